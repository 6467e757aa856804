package controlplane

import (
	"strconv"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// Controllers whose subject cannot exist here. Each one left out saves its informers.
var unusedControllers = []string{
	// Kubelets are played by one agent with a certificate of its own.
	"certificatesigningrequest-signing-controller",
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"podcertificaterequest-cleaner-controller",
	"kube-apiserver-serving-clustertrustbundle-publisher-controller",
	"bootstrap-signer-controller",
	"token-cleaner-controller",
	"ttl-controller",
	// Pod addresses come from the node agent.
	"node-ipam-controller",
	// Volumes are folders: nothing to attach, nothing to grow.
	"persistentvolume-attach-detach-controller",
	"persistentvolume-expander-controller",
	"volumeattributesclass-protection-controller",
	"selinux-warning-controller",
	// Leftovers of earlier Kubernetes versions.
	"legacy-serviceaccount-token-cleaner-controller",
	"storageversion-garbage-collector-controller",
	"storage-version-migrator-controller",
}

// ControllerManager runs the controllers of Kubernetes.
func ControllerManager(c Cluster) (supervisor.Program, error) {
	kubeconfig, err := c.KubeconfigFor("controller-manager", c.PKI.ControllerManager)
	if err != nil {
		return supervisor.Program{}, err
	}
	return supervisor.Program{
		Name: ControllerManagerName,
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + c.Network().ControlPlane().String(),
			"--secure-port=" + strconv.Itoa(controllerManagerPort),
			"--tls-cert-file=" + c.PKI.Component.Cert,
			"--tls-private-key-file=" + c.PKI.Component.Key,
			"--leader-elect=false", // there is one
			"--controllers=*,-" + strings.Join(unusedControllers, ",-"),
			"--use-service-account-credentials=true",
			"--root-ca-file=" + c.PKI.CA,
			"--service-account-private-key-file=" + c.PKI.ServiceAccountKey,
			// The budget of a whole control plane on one machine, not that of one of many on a shared one.
			"--kube-api-qps=400",
			"--kube-api-burst=800",
			"--node-monitor-grace-period=40s",
			"--profiling=false",
		},
		Env:   Environment(),
		Grace: StopGrace,
	}, nil
}
