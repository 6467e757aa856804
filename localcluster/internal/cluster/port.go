package cluster

import (
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
)

// assignPorts fills in where the cluster listens on 127.0.0.1: as before if that is free, else on the ports that belong
// to its subnet, else on any.
func assignPorts(s *clusterdir.State) error {
	network := subnet.Network(s.Subnet)
	api, err := freePort(portOf(s.APIServer), network.Port(0))
	if err != nil {
		return fmt.Errorf("find port for kube-apiserver: %w", err)
	}
	proxy, err := freePort(portOf(s.ProxyURL), network.Port(1))
	if err != nil {
		return fmt.Errorf("find port for the proxy: %w", err)
	}
	kubelet, err := freePort(portOf("//"+s.KubeletAddress), network.Port(2))
	if err != nil {
		return fmt.Errorf("find port for the kubelets: %w", err)
	}
	s.APIServer = "https://" + local(api)
	s.ProxyURL = "http://" + local(proxy)
	s.KubeletAddress = local(kubelet)
	return nil
}

func freePort(preferred ...int) (int, error) {
	var failure error
	for _, port := range append(preferred, 0) {
		if port < 0 {
			continue
		}
		listener, err := net.Listen("tcp4", local(port))
		if err != nil {
			failure = err
			continue
		}
		return listener.Addr().(*net.TCPAddr).Port, listener.Close()
	}
	return 0, failure
}

// portOf returns the port of a URL written by an earlier run, or -1.
func portOf(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return -1
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return -1
	}
	return port
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
