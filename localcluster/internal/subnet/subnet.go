// Package subnet gives every running cluster of a machine its own byte k, from which all its addresses follow: pods are
// 10.k.a.b on paper and listen on 127.k.a.b. It allocates no address of a pod; that is the node agent's.
package subnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// The range leaves 127.0 to everybody, and the low and high bytes to what people like to write by hand.
const (
	First = 16
	Last  = 254
)

// ErrTaken says that a running cluster uses the subnet.
var ErrTaken = errors.New("subnet is taken")

// Pods end at 10.k.191.254, so the loopback addresses above serve the cluster itself.
const sentinelPort = 6100

// Network derives the addresses of a cluster from its byte.
type Network byte

// Sentinel is listened on by the supervisor for as long as it runs: the kernel makes it exclusive across users and
// frees it however the supervisor ends.
func (k Network) Sentinel() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(k), 255, 254}), sentinelPort)
}

// ControlPlane is where the programs that no user talks to listen; being exclusive, its ports can be well known.
func (k Network) ControlPlane() netip.Addr { return netip.AddrFrom4([4]byte{127, byte(k), 255, 1}) }

// APIServer is the API server's address on paper; the API refuses loopback endpoints.
func (k Network) APIServer() netip.Addr { return netip.AddrFrom4([4]byte{10, byte(k), 0, 1}) }

// Services is the range of cluster IPs: a quarter, for benchmarks with thousands of graphs.
func (k Network) Services() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(k), 192, 0}), 18)
}

// KubernetesService is the cluster IP of the Service `kubernetes`, the first of the range.
func (k Network) KubernetesService() netip.Addr { return k.Services().Addr().Next() }

// Pods is the range that holds every pod's address on paper; Services is cut out of it.
func (k Network) Pods() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(k), 0, 0}), 16)
}

// Loopback is where the processes of the pod with that paper address listen.
func (k Network) Loopback(paper netip.Addr) netip.Addr {
	b := paper.As4()
	b[0] = 127
	return netip.AddrFrom4(b)
}

// Port is the one a cluster prefers for its n-th listener on 127.0.0.1. It follows from k, so that two clusters which
// start at once do not race for it, and lies below the ports that the kernel gives to outgoing connections.
func (k Network) Port(n int) int { return 20000 + int(k)*16 + n }

// Reservation holds a subnet until it is closed.
type Reservation struct {
	Network
	listener net.Listener
}

// Close frees the subnet.
func (r *Reservation) Close() error { return r.listener.Close() }

// Reserve takes exactly this subnet: a cluster that has run before must come back on its old one.
func Reserve(k byte) (*Reservation, error) {
	if k < First || k > Last {
		return nil, fmt.Errorf("reserve subnet %d: not within %d..%d", k, First, Last)
	}
	address := Network(k).Sentinel()
	listener, err := net.Listen("tcp4", address.String())
	if err != nil {
		return nil, fmt.Errorf("reserve subnet %d (127.%d.0.0/16): %w: %w", k, k, ErrTaken, err)
	}
	return &Reservation{Network: Network(k), listener: listener}, nil
}

// ReserveAny takes the first free subnet, looking from a place that depends on the hint, so that stopped clusters
// tend to find theirs free again.
func ReserveAny(hint uint32) (*Reservation, error) {
	const size = Last - First + 1
	var failure error
	for i := range uint32(size) {
		r, err := Reserve(byte(First + (hint%size+i)%size))
		if err == nil {
			return r, nil
		}
		failure = err
	}
	return nil, fmt.Errorf("every subnet from %d to %d is in use: %w", First, Last, failure)
}
