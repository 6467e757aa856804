package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
)

const contextName = "localcluster"

// WriteAdminKubeconfig writes the one users get: complete in itself, so it can be copied anywhere.
func (c Cluster) WriteAdminKubeconfig() error {
	config := c.config("kubernetes-admin")
	for _, inline := range []struct {
		from string
		into *[]byte
	}{
		{c.PKI.CA, &config.Clusters[contextName].CertificateAuthorityData},
		{c.PKI.Admin.Cert, &config.AuthInfos["kubernetes-admin"].ClientCertificateData},
		{c.PKI.Admin.Key, &config.AuthInfos["kubernetes-admin"].ClientKeyData},
	} {
		data, err := os.ReadFile(inline.from)
		if err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
		*inline.into = data
	}
	return write(config, c.Dir.Kubeconfig())
}

// KubeconfigFor writes that of a program, which refers to its certificate.
func (c Cluster) KubeconfigFor(name string, client pki.Pair) (string, error) {
	config := c.config(name)
	config.Clusters[contextName].CertificateAuthority = c.PKI.CA
	config.AuthInfos[name].ClientCertificate = client.Cert
	config.AuthInfos[name].ClientKey = client.Key
	file := c.KubeconfigOf(name)
	return file, write(config, file)
}

// KubeconfigOf names the kubeconfig of one of the cluster's programs.
func (c Cluster) KubeconfigOf(name string) string {
	return filepath.Join(c.Dir.PKI(), name+".kubeconfig")
}

func (c Cluster) config(user string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: c.State.APIServer}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: user}
	config.CurrentContext = contextName
	return config
}

func write(config *clientcmdapi.Config, file string) error {
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
