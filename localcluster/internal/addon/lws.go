package addon

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/health"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// LWSName is the controller of LeaderWorkerSets: the real one, built from its own module beside this binary.
const LWSName = "lws-controller"

const (
	lwsHealthPort  = 8081
	lwsWebhookPort = 9443
)

// What the project's own installation calls the role of its controller, after the prefix that it gives to every name.
const (
	lwsPrefix = "lws-"
	lwsRole   = lwsPrefix + "manager-role"
)

// The last webhook that the controller registers: once it answers, all do.
const lwsLastWebhook = "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset"

// lwsSetLabel is on the pods of a LeaderWorkerSet. No other pod may depend on its webhooks.
const lwsSetLabel = "leaderworkerset.sigs.k8s.io/name"

// The certificate is the cluster's, so the controller need not make one and write it into the webhook configurations.
const lwsConfig = `apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection:
  leaderElect: false
internalCertManagement:
  enable: false
webhook:
  host: %[1]q
  port: %[2]d
  certDir: %[3]q
health:
  healthProbeBindAddress: "%[1]s:%[4]d"
metrics:
  bindAddress: "0"
`

func lwsProgram(c controlplane.Cluster) (supervisor.Program, error) {
	kubeconfig, err := c.KubeconfigFor(LWSName, c.PKI.LWS)
	if err != nil {
		return supervisor.Program{}, err
	}
	certificates, err := lwsCertificates(c)
	if err != nil {
		return supervisor.Program{}, err
	}
	config, err := c.WriteConfig(LWSName+".yaml",
		fmt.Sprintf(lwsConfig, c.Network().ControlPlane(), lwsWebhookPort, certificates, lwsHealthPort))
	if err != nil {
		return supervisor.Program{}, err
	}
	return supervisor.Program{
		Name:  LWSName,
		Args:  []string{"--config=" + config, "--kubeconfig=" + kubeconfig, "--zap-devel=false", "--zap-stacktrace-level=panic"},
		Env:   controlplane.Environment(),
		Grace: controlplane.StopGrace,
	}, nil
}

// lwsCertificates lays the serving pair out under the names that the controller expects.
func lwsCertificates(c controlplane.Cluster) (string, error) {
	dir := filepath.Join(c.Dir.PKI(), LWSName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create certificate directory: %w", err)
	}
	for link, file := range map[string]string{"tls.crt": c.PKI.Component.Cert, "tls.key": c.PKI.Component.Key} {
		err := os.Symlink(filepath.Join("..", filepath.Base(file)), filepath.Join(dir, link))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("lay out certificate: %w", err)
		}
	}
	return dir, nil
}

func lwsCheck(c controlplane.Cluster) (health.Check, error) {
	return health.TLS(lwsWebhookURL(c, lwsLastWebhook), c.PKI.CA, c.PKI.Admin)
}

func lwsWebhookURL(c controlplane.Cluster, path string) string {
	return "https://" + net.JoinHostPort(c.Network().ControlPlane().String(), strconv.Itoa(lwsWebhookPort)) + path
}

// lwsGrants gives the controller the role that its own project wrote for it.
func lwsGrants() []grant { return []grant{{user: pki.LWSUser, role: lwsRole}} }

const (
	kindMutatingWebhooks   = "MutatingWebhookConfiguration"
	kindValidatingWebhooks = "ValidatingWebhookConfiguration"
)

// adaptLWS does what the project's own overlays do for a controller in a pod: prefix names, restrict the webhooks of pods
// to its pods, and say where and with which certificate the webhooks are served.
func adaptLWS(c controlplane.Cluster, object *unstructured.Unstructured) (bool, error) {
	switch object.GetKind() {
	case kindClusterRole:
		object.SetName(lwsPrefix + object.GetName())
	case kindMutatingWebhooks, kindValidatingWebhooks:
		object.SetName(lwsPrefix + object.GetName())
		return true, adaptWebhooks(c, object)
	}
	return true, nil
}

func adaptWebhooks(c controlplane.Cluster, object *unstructured.Unstructured) error {
	ca, err := os.ReadFile(c.PKI.CA)
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			return errors.New("a webhook is not an object")
		}
		path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil || !found {
			return fmt.Errorf("webhook %v has no path: %w", webhook["name"], err)
		}
		webhook["clientConfig"] = map[string]any{
			"url": lwsWebhookURL(c, path), "caBundle": base64.StdEncoding.EncodeToString(ca),
		}
		if concernsPods(webhook) {
			webhook["objectSelector"] = map[string]any{"matchExpressions": []any{
				map[string]any{"key": lwsSetLabel, "operator": "Exists"},
			}}
		}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

func concernsPods(webhook map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(webhook, "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		if slices.Contains(resources, "pods") {
			return true
		}
	}
	return false
}
