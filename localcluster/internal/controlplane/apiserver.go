package controlplane

import (
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// Issuer is who signs the tokens of ServiceAccounts.
const Issuer = "https://kubernetes.default.svc"

// Pods leave a lost node this long after it was noticed; the usual five minutes would be most of a test's time.
const evictionSeconds = "30"

// Pods and Services have paper addresses only, so everything that kube-apiserver sends into the cluster (webhooks,
// aggregated APIs, services/proxy, pods/proxy, the kubelets' API) goes through our proxy, which knows where they live.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`

// The audit log is for counting writes and finding their author; reads would drown them. Only those of accounts that
// workloads run under are there as well, so that their rights can be held against what they use.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// APIServer serves the API.
func APIServer(c Cluster) (supervisor.Program, error) {
	address, err := url.Parse(c.State.APIServer)
	if err != nil {
		return supervisor.Program{}, fmt.Errorf("parse API server URL %q: %w", c.State.APIServer, err)
	}
	egress, err := c.WriteConfig("egress.yaml", fmt.Sprintf(egressConfig, c.EgressSocket()))
	if err != nil {
		return supervisor.Program{}, err
	}
	args := []string{
		"--bind-address=" + address.Hostname(),
		"--secure-port=" + address.Port(),
		"--advertise-address=" + c.Network().APIServer().String(),
		"--service-cluster-ip-range=" + c.Network().Services().String(),
		"--etcd-servers=unix://" + c.EtcdSocket(),

		"--tls-cert-file=" + c.PKI.APIServer.Cert,
		"--tls-private-key-file=" + c.PKI.APIServer.Key,
		"--client-ca-file=" + c.PKI.CA,
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + Issuer,
		"--service-account-key-file=" + c.PKI.ServiceAccountKey,
		"--service-account-signing-key-file=" + c.PKI.ServiceAccountKey,

		"--kubelet-client-certificate=" + c.PKI.KubeletClient.Cert,
		"--kubelet-client-key=" + c.PKI.KubeletClient.Key,
		"--kubelet-certificate-authority=" + c.PKI.CA,
		"--kubelet-preferred-address-types=InternalIP",

		"--requestheader-client-ca-file=" + c.PKI.FrontProxyCA,
		"--requestheader-allowed-names=" + pki.FrontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.PKI.FrontProxyClient.Cert,
		"--proxy-client-key-file=" + c.PKI.FrontProxyClient.Key,

		"--egress-selector-config-file=" + egress,
		// Services are resolved to a pod's address here; a cluster IP means nothing to a kernel without kube-proxy.
		"--enable-aggregator-routing=true",

		"--allow-privileged=true",
		"--default-not-ready-toleration-seconds=" + evictionSeconds,
		"--default-unreachable-toleration-seconds=" + evictionSeconds,
	}
	if c.State.AuditLog {
		policy, err := c.WriteConfig("audit.yaml", auditPolicy)
		if err != nil {
			return supervisor.Program{}, err
		}
		args = append(args,
			"--audit-policy-file="+policy,
			"--audit-log-path="+filepath.Join(c.Dir.Logs(), "audit.log"),
			"--audit-log-maxsize=1024", // MiB; a count must not be split by rotation
			"--audit-log-maxbackup=1",
		)
	}
	return supervisor.Program{
		Name:  APIServerName,
		Args:  args,
		Env:   Environment(),
		Grace: StopGrace,
	}, nil
}
