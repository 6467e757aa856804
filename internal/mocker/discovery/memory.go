package discovery

import (
	"context"
	"sync"
)

// Hub is a store for components that share a process.
type Hub struct {
	mu      sync.Mutex
	members map[int]Metadata
	next    int
	changed chan struct{}
}

// NewHub returns an empty hub.
func NewHub() *Hub { return &Hub{members: map[int]Metadata{}, changed: make(chan struct{})} }

// Join returns a store for one member.
func (h *Hub) Join() Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	return &member{hub: h, id: h.next}
}

func (h *Hub) set(id int, m *Metadata) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m == nil {
		delete(h.members, id)
	} else {
		h.members[id] = m.Clone()
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *Hub) snapshot() (Set, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Metadata
	for _, m := range h.members {
		all = append(all, m)
	}
	return Merge(all...), h.changed
}

type member struct {
	hub *Hub
	id  int
}

func (m *member) Publish(data Metadata) { m.hub.set(m.id, &data) }

func (m *member) Close(context.Context) { m.hub.set(m.id, nil) }

func (m *member) Watch(ctx context.Context, f func(Set)) {
	for {
		set, changed := m.hub.snapshot()
		f(set)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
