// Package kv keeps the books of an engine's key-value cache: which blocks are
// in use, which are merely remembered, and what has to go when space runs out.
//
// It is pure: no clock, no goroutine, no knowledge of requests or of time. One
// Manager belongs to one scheduler, which calls it from one goroutine.
package kv

import "container/list"

// ID names a block: the chained hash of a full block's contents and all that
// came before it, or a number of its own for a block nobody can share.
type ID uint64

// seed begins every chain of hashes.
const seed = 1337

// Chain returns the ids of the full blocks of tokens.
func Chain(tokens []uint32, blockSize int) []ID {
	ids := make([]ID, 0, len(tokens)/blockSize)
	parent := ID(seed)
	for ; len(tokens) >= blockSize; tokens = tokens[blockSize:] {
		parent = Next(parent, tokens[:blockSize])
		ids = append(ids, parent)
	}
	return ids
}

// Next returns the id of a full block of tokens that follows parent.
func Next(parent ID, tokens []uint32) ID {
	h := uint64(14695981039346656037) ^ uint64(parent)*0x9E3779B97F4A7C15
	for _, token := range tokens {
		h = (h ^ uint64(token)) * 1099511628211
	}
	h ^= h >> 29
	return ID(h)
}

// Manager is a cache of a fixed number of blocks. A block is active while
// sequences refer to it and inactive afterwards; inactive blocks are forgotten
// oldest first when room is needed.
type Manager struct {
	capacity int
	active   map[ID]int
	inactive map[ID]*list.Element
	age      *list.List // front is the oldest inactive block
	private  ID
}

// NewManager returns an empty cache.
func NewManager(capacity int) *Manager {
	return &Manager{capacity: capacity, active: map[ID]int{}, inactive: map[ID]*list.Element{}, age: list.New()}
}

// Capacity is the number of blocks.
func (m *Manager) Capacity() int { return m.capacity }

// Active is the number of blocks in use.
func (m *Manager) Active() int { return len(m.active) }

// Inactive is the number of blocks remembered but unused.
func (m *Manager) Inactive() int { return len(m.inactive) }

// Known counts how many of ids, from the first, are in the cache: the prefix
// that needs no computing.
func (m *Manager) Known(ids []ID) int {
	for i, id := range ids {
		_, inactive := m.inactive[id]
		if m.active[id] == 0 && !inactive {
			return i
		}
	}
	return len(ids)
}

// Private returns an id that no other block will ever have: for a block that
// is still filling, or any block when prefixes are not cached. Hashes have the
// same 64 bits, so private ids count down from the top, where a chance hit is
// as unlikely as between two hashes.
func (m *Manager) Private() ID {
	m.private--
	return m.private
}

// Use refers to a block once more, bringing it into the cache if need be. It
// fails, changing nothing, when every block is active.
func (m *Manager) Use(id ID) bool {
	if m.active[id] > 0 {
		m.active[id]++
		return true
	}
	if element, ok := m.inactive[id]; ok {
		m.age.Remove(element)
		delete(m.inactive, id)
		m.active[id] = 1
		return true
	}
	if len(m.active)+len(m.inactive) >= m.capacity && !m.forget() {
		return false
	}
	m.active[id] = 1
	return true
}

// Release drops one reference. The last one makes the block inactive, its
// contents still known.
func (m *Manager) Release(id ID) {
	if m.dropped(id) {
		m.inactive[id] = m.age.PushBack(id)
	}
}

// Destroy drops one reference and, with the last one, the block.
func (m *Manager) Destroy(id ID) { m.dropped(id) }

// Fill turns a private block into the full block full, sharing it if it is
// already known.
func (m *Manager) Fill(private, full ID) {
	m.Destroy(private)
	// The slot just given back is free, so this cannot fail.
	m.Use(full)
}

// dropped removes one reference and says whether it was the last.
func (m *Manager) dropped(id ID) bool {
	switch n := m.active[id]; n {
	case 0:
		return false
	case 1:
		delete(m.active, id)
		return true
	default:
		m.active[id] = n - 1
		return false
	}
}

// forget evicts the block unused for longest.
func (m *Manager) forget() bool {
	oldest := m.age.Front()
	if oldest == nil {
		return false
	}
	delete(m.inactive, oldest.Value.(ID))
	m.age.Remove(oldest)
	return true
}
