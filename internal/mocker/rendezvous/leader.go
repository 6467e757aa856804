package rendezvous

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// lead opens the hall, makes sure that the group's name for the leader leads
// here, and waits for the others.
func lead(ctx context.Context, p Place, n Network) (*Group, error) {
	_, port, err := net.SplitHostPort(p.Leader)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	h, err := open(n, number, newLedger(p, n.Node))
	if err != nil {
		return nil, err
	}
	n.Log.Info("leading a group", "address", p.Leader, "ranks", p.Size, "shape", p.Shape)
	if err := greetSelf(ctx, h, p, n); err != nil {
		h.close()
		return nil, err
	}
	if err := h.wait(ctx); err != nil {
		h.close()
		return nil, err
	}
	n.Log.Info("the group is complete", "ranks", p.Size)
	return newGroup(h.lost, n.Settle, h.close), nil
}

// greetSelf dials the leader's address as any other node does. An engine's
// leader is a client of its own store too: a name that leads nowhere, or to
// another group's leader, must not go unnoticed because the leader needs no name.
func greetSelf(ctx context.Context, h *hall, p Place, n Network) error {
	greeting := p.hello(n)
	greeting.Token = h.token
	return n.retry(ctx, fmt.Sprintf("reach myself as the leader %s", p.Leader), func() error {
		s, err := enter(ctx, n, p.Leader, greeting)
		if err == nil {
			s.close()
		}
		return err
	})
}
