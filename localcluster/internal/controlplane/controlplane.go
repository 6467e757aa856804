// Package controlplane says how each program of the cluster is run: its flags, its configuration files, its environment
// and how to ask whether it is well. It writes files but starts nothing.
package controlplane

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
)

// Names the binary answers to.
const (
	EtcdName              = "etcd"
	APIServerName         = "kube-apiserver"
	ControllerManagerName = "kube-controller-manager"
	SchedulerName         = "kube-scheduler"
	ProxyName             = "proxy"
	NodeAgentName         = "node-agent"
)

// Ports on the cluster's own loopback address, which no other cluster shares.
const (
	controllerManagerPort = 10257
	schedulerPort         = 10259
)

// StopGrace suits a program that keeps nothing in memory worth waiting for: what counts is in etcd. kube-apiserver in
// particular would wait a minute for watches to end.
const StopGrace = 2 * time.Second

// Cluster is what the programs have to know.
type Cluster struct {
	Dir   clusterdir.Dir
	State clusterdir.State
	PKI   pki.Bundle
}

// Open describes the cluster that a directory holds.
func Open(dir clusterdir.Dir) (Cluster, error) {
	state, err := dir.ReadState()
	if err != nil {
		return Cluster{}, err
	}
	return Cluster{Dir: dir, State: state, PKI: pki.In(dir.PKI())}, nil
}

// Network is where the cluster's addresses come from.
func (c Cluster) Network() subnet.Network { return subnet.Network(c.State.Subnet) }

// EtcdSocket is where etcd serves kube-apiserver. The directory is private to the user, so no TLS is needed.
func (c Cluster) EtcdSocket() string { return filepath.Join(c.State.SocketDir, "etcd.sock") }

// EgressSocket is where the proxy serves kube-apiserver.
func (c Cluster) EgressSocket() string { return filepath.Join(c.State.SocketDir, "egress.sock") }

func (c Cluster) componentURL(port int, path string) string {
	return "https://" + net.JoinHostPort(c.Network().ControlPlane().String(), strconv.Itoa(port)) + path
}

// Hosts are the names and addresses that the serving certificates must cover.
func Hosts(k subnet.Network) pki.Hosts {
	return pki.Hosts{
		APIServer: []string{
			"127.0.0.1", "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			k.KubernetesService().String(), k.APIServer().String(),
		},
		Component: []string{"127.0.0.1", "localhost", k.ControlPlane().String()},
	}
}

// Environment keeps the user's proxies, kubeconfigs and tuning out of the cluster.
func Environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// WriteConfig writes a configuration file of a program and returns its path.
func (c Cluster) WriteConfig(name, content string) (string, error) {
	file := filepath.Join(c.Dir.Config(), name)
	if err := os.MkdirAll(c.Dir.Config(), 0o700); err != nil {
		return "", fmt.Errorf("create configuration directory: %w", err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return file, nil
}
