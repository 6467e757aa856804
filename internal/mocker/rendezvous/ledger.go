package rendezvous

import (
	"fmt"
	"slices"
	"strings"
)

// ledger is the roll of a group with numbered ranks: each is taken once.
type ledger struct {
	size  int
	shape string
	takes []string // by rank, the node that has it
}

func newLedger(p Place, leader string) *ledger {
	l := &ledger{size: p.Size, shape: p.Shape, takes: make([]string, p.Size)}
	l.write(p.First, p.Count, leader)
	return l
}

func (l *ledger) write(first, count int, node string) {
	for i := first; i < first+count; i++ {
		l.takes[i] = node
	}
}

func (l *ledger) admit(h hello) error {
	switch {
	case h.Size != l.size:
		return fmt.Errorf("node %s counts %d ranks in the group, the leader %d", h.Node, h.Size, l.size)
	case h.Count < 1 || h.First < 0 || h.First+h.Count > l.size:
		return fmt.Errorf("node %s brings %s, the group has %s", h.Node, ranks(h.First, h.Count), ranks(0, l.size))
	case h.Shape != l.shape:
		return fmt.Errorf("node %s runs %s, the leader %s", h.Node, h.Shape, l.shape)
	}
	for i, holder := range l.takes[h.First : h.First+h.Count] {
		if holder != "" {
			return fmt.Errorf("node %s brings %s, but rank %d is taken by node %s", h.Node, ranks(h.First, h.Count), h.First+i, holder)
		}
	}
	l.write(h.First, h.Count, h.Node)
	return nil
}

func (l *ledger) leave(h hello) { l.write(h.First, h.Count, "") }

func (l *ledger) missing() string {
	var gaps []string
	for first := 0; first < l.size; first++ {
		if l.takes[first] != "" {
			continue
		}
		rest := l.takes[first:]
		count := slices.IndexFunc(rest, func(node string) bool { return node != "" })
		if count < 0 {
			count = len(rest)
		}
		gaps = append(gaps, ranks(first, count))
		first += count
	}
	if gaps == nil {
		return ""
	}
	return "nobody has brought " + strings.Join(gaps, " and ")
}
