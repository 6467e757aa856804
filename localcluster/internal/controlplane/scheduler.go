package controlplane

import (
	"fmt"
	"strconv"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// One scheduler answers to the names of the gang schedulers too: pods that ask for them get placed, one by one.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %q
  qps: 500
  burst: 1000
enableProfiling: false
profiles:
- schedulerName: default-scheduler
- schedulerName: volcano
- schedulerName: kai-scheduler
`

// Scheduler places pods on nodes.
func Scheduler(c Cluster) (supervisor.Program, error) {
	kubeconfig, err := c.KubeconfigFor("scheduler", c.PKI.Scheduler)
	if err != nil {
		return supervisor.Program{}, err
	}
	config, err := c.WriteConfig("scheduler.yaml", fmt.Sprintf(schedulerConfig, kubeconfig))
	if err != nil {
		return supervisor.Program{}, err
	}
	return supervisor.Program{
		Name: SchedulerName,
		Args: []string{
			"--config=" + config,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + c.Network().ControlPlane().String(),
			"--secure-port=" + strconv.Itoa(schedulerPort),
			"--tls-cert-file=" + c.PKI.Component.Cert,
			"--tls-private-key-file=" + c.PKI.Component.Key,
		},
		Env:   Environment(),
		Grace: StopGrace,
	}, nil
}
