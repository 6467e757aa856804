// Package address hands out pod addresses.
//
// A pod has one address in two spellings: 10.k.a.b on paper, which is what the
// API shows, and 127.k.a.b, where its processes really listen. The package
// knows nothing of pods but a name for who holds an address, and refuses to give
// one to two holders.
package address

import (
	"fmt"
	"maps"
	"net/netip"
	"sync"
)

// Pods live in 0.2 .. 191.254 of the subnet; Services own what is above.
const (
	first = 0<<8 + 2
	last  = 191<<8 + 254
)

// Address is the place of one pod in the cluster's subnet.
type Address struct {
	subnet byte
	host   uint16
}

// Paper is the address that the API shows.
func (a Address) Paper() string { return a.in(10) }

// Loopback is the address where the pod's processes listen.
func (a Address) Loopback() string { return a.in(127) }

func (a Address) in(network byte) string {
	return netip.AddrFrom4([4]byte{network, a.subnet, byte(a.host >> 8), byte(a.host)}).String()
}

// Pool is the set of addresses of one cluster. It is safe for concurrent use.
type Pool struct {
	subnet byte

	mu   sync.Mutex
	next uint16
	held map[uint16]string // by whom
}

// NewPool makes the pool of subnet k.
func NewPool(subnet byte) *Pool {
	return &Pool{subnet: subnet, next: first, held: map[uint16]string{}}
}

// Take hands out a free address. Addresses go round, so that one just released
// is not reused while peers may still remember its former owner.
func (p *Pool) Take(holder string) (Address, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range last - first + 1 {
		host := p.next
		p.next++
		if p.next > last {
			p.next = first
		}
		if _, taken := p.held[host]; usable(host) && !taken {
			p.held[host] = holder
			return Address{p.subnet, host}, nil
		}
	}
	return Address{}, fmt.Errorf("take a pod address: all %d addresses of subnet 10.%d.0.0/16 are held", len(p.held), p.subnet)
}

// Claim takes the given paper address, as a restarted agent does for pods that
// already have one. It reports false if the address is foreign or someone else's.
func (p *Pool) Claim(holder, paper string) (Address, bool) {
	ip, err := netip.ParseAddr(paper)
	if err != nil || !ip.Is4() {
		return Address{}, false
	}
	b := ip.As4()
	host := uint16(b[2])<<8 | uint16(b[3])
	if b[0] != 10 || b[1] != p.subnet || !usable(host) {
		return Address{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, taken := p.held[host]; taken && other != holder {
		return Address{}, false
	}
	p.held[host] = holder
	return Address{p.subnet, host}, true
}

// Release gives an address back.
func (p *Pool) Release(a Address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, a.host)
}

// Retain gives back the addresses of all holders that are not alive.
func (p *Pool) Retain(alive func(holder string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.held, func(_ uint16, holder string) bool { return !alive(holder) })
}

// usable leaves out .0 and .255, which look like a network and a broadcast
// address to cautious clients.
func usable(host uint16) bool {
	low := byte(host)
	return host >= first && host <= last && low != 0 && low != 255
}
