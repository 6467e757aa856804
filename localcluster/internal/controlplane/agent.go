package controlplane

import (
	"time"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// Containers get a moment to end by themselves when the cluster stops.
const nodeAgentGrace = 10 * time.Second

// Proxy resolves the cluster's paper addresses and names for pods, for kube-apiserver and for the operator.
func Proxy(c Cluster) (supervisor.Program, error) {
	if _, err := c.KubeconfigFor(ProxyName, c.PKI.Proxy); err != nil {
		return supervisor.Program{}, err
	}
	return supervisor.Program{
		Name:  ProxyName,
		Args:  []string{"--dir=" + string(c.Dir)},
		Env:   Environment(),
		Grace: StopGrace,
	}, nil
}

// NodeAgent plays the kubelets of all nodes and provisions volumes.
func NodeAgent(c Cluster) (supervisor.Program, error) {
	if _, err := c.KubeconfigFor(NodeAgentName, c.PKI.NodeAgent); err != nil {
		return supervisor.Program{}, err
	}
	return supervisor.Program{
		Name:  NodeAgentName,
		Args:  []string{"--dir=" + string(c.Dir)},
		Env:   Environment(),
		Grace: nodeAgentGrace,
	}, nil
}
