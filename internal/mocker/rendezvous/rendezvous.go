// Package rendezvous brings the nodes of one multinode group together over the
// cluster's own names, the way their engines do: torch's store for SGLang, the
// coordinator of vLLM's data parallelism, Ray, and MPI over SSH.
//
//	leader            listens, waits until every rank is there, serves
//	followers         dial the leader by name, say who they are, stay connected
//	anybody is lost   the others end too, and the orchestrator starts them again
//
// A wrong rank, a wrong size or an address that leads nowhere therefore fails
// here as it would with a GPU: on the node that is wrong, in words, and in the
// leader's log. Nothing but who is there ever crosses these connections: no
// requests and no tokens.
package rendezvous

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Place is a node's place in its group: Count ranks of Size, from First on.
type Place struct {
	// Leader is the host:port by which every node, the leader too, knows the leader.
	Leader             string
	First, Count, Size int
	// Shape is what all nodes must agree on, for people to read.
	Shape string
}

// Leads reports whether this node is the one that the others dial.
func (p Place) Leads() bool { return p.First == 0 }

// Check finds what is wrong with a place by itself.
func (p Place) Check() error {
	if p.Count < 1 || p.First < 0 || p.First+p.Count > p.Size {
		return fmt.Errorf("%s out of range: the group has %s", ranks(p.First, p.Count), ranks(0, p.Size))
	}
	return CheckAddress(p.Leader)
}

// CheckAddress refuses a leader's address that nobody can dial; above all one
// with variables that no shell and no kubelet has expanded.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("leader address %q is not host:port", address)
	}
	if host == "" || strings.ContainsAny(host, "$() ") {
		return fmt.Errorf("leader address %q has no host that could be resolved", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("leader address %q has no port number", address)
	}
	return nil
}

// Meet waits until the group is complete. The error says who is missing, or why
// this node was refused.
func Meet(ctx context.Context, p Place, n Network) (*Group, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	if p.Leads() {
		return lead(ctx, p, n)
	}
	return follow(ctx, p, n)
}

// ranks names count ranks from first on.
func ranks(first, count int) string {
	if count == 1 {
		return fmt.Sprintf("rank %d", first)
	}
	return fmt.Sprintf("ranks %d to %d", first, first+count-1)
}
