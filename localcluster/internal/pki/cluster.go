package pki

import (
	"errors"
	"fmt"
	"os"
)

// Users that the cluster's own programs authenticate as, beyond those Kubernetes has built in.
const (
	NodeAgentUser = "localcluster:node-agent"
	ProxyUser     = "localcluster:proxy"
	LWSUser       = "localcluster:lws-controller"
	GroveUser     = "localcluster:grove-standin"
)

// FrontProxyUser is the only client whose user headers aggregated API servers believe.
const FrontProxyUser = "front-proxy-client"

// Bundle is everything a cluster's programs need to trust each other.
type Bundle struct {
	CA           string // file; signs every serving and client certificate but the front proxy's
	FrontProxyCA string

	APIServer Pair // serves the API
	Component Pair // serves health, metrics and the kubelets' API

	Admin, ControllerManager, Scheduler, NodeAgent, Proxy Pair

	LWS, Grove Pair // add-ons

	KubeletClient    Pair // kube-apiserver towards the kubelets
	FrontProxyClient Pair // kube-apiserver towards aggregated APIs

	ServiceAccountKey string
}

// Hosts says under which names and addresses servers are reached.
type Hosts struct {
	APIServer []string
	Component []string
}

// In names the files of the bundle that Ensure makes in dir.
func In(dir string) Bundle {
	return Bundle{
		CA:                pairIn(dir, "ca").Cert,
		FrontProxyCA:      pairIn(dir, "front-proxy-ca").Cert,
		APIServer:         pairIn(dir, "apiserver"),
		Component:         pairIn(dir, "component"),
		Admin:             pairIn(dir, "admin"),
		ControllerManager: pairIn(dir, "controller-manager"),
		Scheduler:         pairIn(dir, "scheduler"),
		NodeAgent:         pairIn(dir, "node-agent"),
		Proxy:             pairIn(dir, "proxy"),
		LWS:               pairIn(dir, "lws-controller"),
		Grove:             pairIn(dir, "grove-standin"),
		KubeletClient:     pairIn(dir, "apiserver-kubelet-client"),
		FrontProxyClient:  pairIn(dir, "front-proxy-client"),
		ServiceAccountKey: pairIn(dir, "service-account").Key,
	}
}

// Ensure makes the authorities and keys that dir lacks, and issues every leaf certificate anew.
func Ensure(dir string, hosts Hosts) (Bundle, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Bundle{}, fmt.Errorf("create certificate directory: %w", err)
	}
	b := In(dir)
	ca, err := openAuthority(pairIn(dir, "ca"))
	if err != nil {
		return Bundle{}, err
	}
	frontProxy, err := openAuthority(pairIn(dir, "front-proxy-ca"))
	if err != nil {
		return Bundle{}, err
	}
	return b, errors.Join(
		ensureKey(b.ServiceAccountKey),
		ca.server(b.APIServer, hosts.APIServer...),
		ca.server(b.Component, hosts.Component...),
		ca.client(b.Admin, "kubernetes-admin", "system:masters"),
		ca.client(b.ControllerManager, "system:kube-controller-manager"),
		ca.client(b.Scheduler, "system:kube-scheduler"),
		ca.client(b.NodeAgent, NodeAgentUser),
		ca.client(b.Proxy, ProxyUser),
		ca.client(b.LWS, LWSUser),
		ca.client(b.Grove, GroveUser),
		ca.client(b.KubeletClient, "kube-apiserver-kubelet-client", "system:masters"),
		frontProxy.client(b.FrontProxyClient, FrontProxyUser),
	)
}
