package proxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
)

// Refusal is an address that leads nowhere, with the HTTP status that says why: 403 for what is outside the cluster,
// 502 for what should be in it but is not.
type Refusal struct {
	Status int
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

func foreign(format string, args ...any) error {
	return &Refusal{Status: http.StatusForbidden, Reason: fmt.Sprintf(format, args...)}
}

func unreachable(format string, args ...any) error {
	return &Refusal{Status: http.StatusBadGateway, Reason: fmt.Sprintf(format, args...)}
}

// Resolver plays DNS and kube-proxy:
//
//	127.0.0.1                        itself
//	10.k.0.1                         kube-apiserver
//	10.k.a.b                         the pod's 127.k.a.b
//	10.k.192.0/18                    a ready endpoint of the Service with that cluster IP
//	svc.ns[.svc[.cluster.local]]     a ready endpoint; of a headless Service on the port asked for
//	pod.svc.ns[.svc[.cluster.local]] the endpoint with that host name
type Resolver struct {
	Network   subnet.Network
	APIServer string
	Services  cache.Indexer // of *corev1.Service, with serviceIndexers
	Slices    cache.Indexer // of *discoveryv1.EndpointSlice, with sliceIndexers
}

// Resolve returns the loopback addresses that serve host:port, in the order to try them.
func (r *Resolver) Resolve(hostport string) ([]string, error) {
	host, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, foreign("address %q is not host:port", hostport)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return nil, foreign("address %q has no port number", hostport)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return r.resolveIP(ip.Unmap(), int32(port))
	}
	return r.resolveName(strings.ToLower(strings.TrimSuffix(host, ".")), int32(port))
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func (r *Resolver) resolveIP(ip netip.Addr, port int32) ([]string, error) {
	switch {
	case ip == loopback:
		return []string{join(ip, port)}, nil
	case r.Network.Services().Contains(ip):
		service, err := r.serviceByIP(ip)
		if err != nil {
			return nil, err
		}
		return r.resolveService(service, port)
	}
	address, err := r.endpointAddress(ip, port)
	if err != nil {
		return nil, err
	}
	return []string{address}, nil
}

// endpointAddress translates the address of a pod, or of kube-apiserver, which has one like a pod's.
func (r *Resolver) endpointAddress(ip netip.Addr, port int32) (string, error) {
	switch {
	case ip == r.Network.APIServer():
		return r.APIServer, nil
	case r.Network.Services().Contains(ip) || !r.Network.Pods().Contains(ip):
		return "", foreign("address %s is not one of this cluster's pods", ip)
	}
	return join(r.Network.Loopback(ip), port), nil
}

func (r *Resolver) resolveName(name string, port int32) ([]string, error) {
	labels := strings.Split(name, ".")
	qualified := false
	if n := len(labels); n >= 5 && labels[n-2] == "cluster" && labels[n-1] == "local" && labels[n-3] == "svc" {
		labels, qualified = labels[:n-3], true
	} else if n >= 3 && labels[n-1] == "svc" {
		labels, qualified = labels[:n-1], true
	}
	switch {
	case len(labels) == 2:
		service, err := r.serviceByName(labels[1], labels[0])
		if err != nil {
			return nil, err
		}
		return r.resolveService(service, port)
	case len(labels) == 3:
		service, err := r.serviceByName(labels[2], labels[1])
		if err != nil && !qualified {
			break // most names of three words are of the world outside
		}
		if err != nil {
			return nil, err
		}
		return r.resolvePod(service, labels[0], port)
	}
	return nil, foreign("name %q is neither service.namespace nor a longer name of this cluster", name)
}

func (r *Resolver) resolveService(service *corev1.Service, port int32) ([]string, error) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return nil, foreign("Service %s/%s points outside the cluster", service.Namespace, service.Name)
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		return r.endpoints(service, func(discoveryv1.Endpoint) bool { return true }, samePort(port))
	}
	for _, p := range service.Spec.Ports {
		if p.Port == port && isTCP(&p.Protocol) {
			return r.endpoints(service, func(discoveryv1.Endpoint) bool { return true }, portNamed(p.Name))
		}
	}
	return nil, unreachable("Service %s/%s has no port %d", service.Namespace, service.Name, port)
}

func (r *Resolver) resolvePod(service *corev1.Service, hostname string, port int32) ([]string, error) {
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		return nil, unreachable("Service %s/%s is not headless, its pods have no names", service.Namespace, service.Name)
	}
	return r.endpoints(service, func(e discoveryv1.Endpoint) bool {
		return e.Hostname != nil && *e.Hostname == hostname
	}, samePort(port))
}

// endpoints returns the ready endpoints in random order; without any, those that still serve while terminating, as
// kube-proxy does.
func (r *Resolver) endpoints(
	service *corev1.Service, match func(discoveryv1.Endpoint) bool, portOf func(*discoveryv1.EndpointSlice) (int32, bool),
) ([]string, error) {
	slices, err := r.Slices.ByIndex(byService, service.Namespace+"/"+service.Name)
	if err != nil {
		return nil, fmt.Errorf("look up endpoints of %s/%s: %w", service.Namespace, service.Name, err)
	}
	var ready, serving []string
	for _, object := range slices {
		slice := object.(*discoveryv1.EndpointSlice)
		port, ok := portOf(slice)
		if !ok {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if !match(endpoint) || len(endpoint.Addresses) == 0 {
				continue
			}
			ip, err := netip.ParseAddr(endpoint.Addresses[0])
			if err != nil {
				continue
			}
			address, err := r.endpointAddress(ip, port)
			if err != nil {
				return nil, err
			}
			switch condition := endpoint.Conditions; {
			case condition.Ready == nil || *condition.Ready:
				ready = append(ready, address)
			case condition.Serving != nil && *condition.Serving:
				serving = append(serving, address)
			}
		}
	}
	if len(ready) == 0 {
		ready = serving
	}
	if len(ready) == 0 {
		return nil, unreachable("Service %s/%s has no ready endpoint for this", service.Namespace, service.Name)
	}
	rand.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
	return ready, nil
}

func samePort(port int32) func(*discoveryv1.EndpointSlice) (int32, bool) {
	return func(*discoveryv1.EndpointSlice) (int32, bool) { return port, true }
}

func portNamed(name string) func(*discoveryv1.EndpointSlice) (int32, bool) {
	return func(slice *discoveryv1.EndpointSlice) (int32, bool) {
		for _, p := range slice.Ports {
			sameName := p.Name == nil && name == "" || p.Name != nil && *p.Name == name
			if sameName && p.Port != nil && isTCP(p.Protocol) {
				return *p.Port, true
			}
		}
		return 0, false
	}
}

func isTCP(p *corev1.Protocol) bool { return p == nil || *p == "" || *p == corev1.ProtocolTCP }

func (r *Resolver) serviceByIP(ip netip.Addr) (*corev1.Service, error) {
	found, err := r.Services.ByIndex(byClusterIP, ip.String())
	if err != nil {
		return nil, fmt.Errorf("look up cluster IP %s: %w", ip, err)
	}
	if len(found) == 0 {
		return nil, unreachable("no Service has the cluster IP %s", ip)
	}
	return found[0].(*corev1.Service), nil
}

func (r *Resolver) serviceByName(namespace, name string) (*corev1.Service, error) {
	found, ok, err := r.Services.GetByKey(namespace + "/" + name)
	if err != nil {
		return nil, fmt.Errorf("look up Service %s/%s: %w", namespace, name, err)
	}
	if !ok {
		return nil, unreachable("no Service %s/%s", namespace, name)
	}
	return found.(*corev1.Service), nil
}

func join(ip netip.Addr, port int32) string {
	return netip.AddrPortFrom(ip, uint16(port)).String()
}
