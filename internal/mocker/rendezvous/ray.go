package rendezvous

import (
	"context"
	"fmt"
)

// Head is the first node of a Ray cluster. Nodes join it at any time; the
// engine then claims GPUs, and from that moment on needs every node it has.
type Head struct {
	hall    *hall
	pool    *pool
	network Network
}

// StartHead opens a Ray cluster of one node with so many GPUs, 0 if not known.
func StartHead(n Network, port, gpus int) (*Head, error) {
	p := &pool{}
	if err := p.admit(hello{GPUs: gpus}); err != nil {
		return nil, err
	}
	h, err := open(n, port, p)
	if err != nil {
		return nil, fmt.Errorf("ray start --head: %w", err)
	}
	n.Log.Info("Ray head started", "address", h.listener.Addr().String(), "gpus", gpus)
	return &Head{hall: h, pool: p, network: n}, nil
}

// Claim waits until the cluster has so many GPUs.
func (h *Head) Claim(ctx context.Context, gpus int) (*Group, error) {
	ctx, cancel := h.network.deadline(ctx)
	defer cancel()
	h.hall.mu.Lock()
	h.pool.claimed = gpus
	h.hall.mu.Unlock()
	if err := h.hall.wait(ctx); err != nil {
		return nil, fmt.Errorf("place the engine on Ray: %w", err)
	}
	h.network.Log.Info("the Ray cluster is large enough", "gpus", gpus)
	return newGroup(h.hall.lost, h.network.Settle, func() {}), nil
}

// Close ends the cluster.
func (h *Head) Close() { h.hall.close() }

// JoinRay brings a node's GPUs, 0 if not known, into the cluster of the head at
// address. There is nothing to wait for: a node does not know what for it is there.
func JoinRay(ctx context.Context, n Network, address string, gpus int) (*Group, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	s, err := find(ctx, n, address, hello{Node: n.Node, GPUs: gpus})
	if err != nil {
		return nil, err
	}
	n.Log.Info("joined the Ray cluster", "head", address, "gpus", gpus)
	return s.group(n), nil
}

// pool is the roll of a Ray cluster: whoever comes is welcome, and the cluster
// is complete when an engine has claimed GPUs and they are there. A node that
// does not know its GPUs is taken to have enough.
type pool struct {
	claimed, known, unknown int
}

func (p *pool) admit(h hello) error {
	if h.Size != 0 {
		return fmt.Errorf("node %s speaks to a Ray head as a node of another kind of group", h.Node)
	}
	p.count(h, 1)
	return nil
}

func (p *pool) leave(h hello) { p.count(h, -1) }

func (p *pool) count(h hello, sign int) {
	if h.GPUs == 0 {
		p.unknown += sign
	} else {
		p.known += sign * h.GPUs
	}
}

func (p *pool) missing() string {
	switch {
	case p.claimed == 0:
		return "no engine has claimed GPUs yet"
	case p.unknown > 0 || p.known >= p.claimed:
		return ""
	}
	return fmt.Sprintf("the engine needs %d GPUs, the Ray cluster has %d", p.claimed, p.known)
}
