package kv

import (
	"math/rand/v2"
	"testing"
)

func prompt(n int, salt uint32) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(i)*31 + salt
	}
	return tokens
}

func TestChainNamesABlockByItsWholePast(t *testing.T) {
	a, b := Chain(prompt(12, 0), 4), Chain(append(prompt(4, 0), prompt(8, 9)...), 4)
	if len(a) != 3 || a[0] != b[0] || a[1] == b[1] || a[2] == b[2] {
		t.Errorf("chains %v and %v: want the first block alike and the others not", a, b)
	}
	if got := len(Chain(prompt(7, 0), 4)); got != 1 {
		t.Errorf("7 tokens make %d full blocks of 4, want 1", got)
	}
}

func TestSharedPrefixIsStoredOnce(t *testing.T) {
	m := NewManager(100)
	first, second := NewSequence(prompt(10, 0), 4, true), NewSequence(prompt(10, 0), 4, true)
	if !first.Allocate(m) || second.Cached(m) != 8 || !second.Allocate(m) {
		t.Fatal("a second sequence with the same prompt must find 8 tokens and fit")
	}
	// Two full blocks in common, one partial block each.
	if m.Active() != 4 {
		t.Errorf("active = %d, want 4", m.Active())
	}
	first.Free(m)
	second.Free(m)
	if m.Active() != 0 || m.Inactive() != 2 {
		t.Errorf("after both ended: active %d, inactive %d; want 0 and 2: full blocks stay known, partial ones do not", m.Active(), m.Inactive())
	}
}

func TestWithoutSharingNothingIsKnown(t *testing.T) {
	m := NewManager(100)
	s := NewSequence(prompt(8, 0), 4, false)
	s.Allocate(m)
	s.Free(m)
	if other := NewSequence(prompt(8, 0), 4, false); other.Cached(m) != 0 || m.Inactive() != 0 {
		t.Errorf("cached %d, inactive %d; want 0 and 0", other.Cached(m), m.Inactive())
	}
}

func TestOldestUnusedBlockIsForgottenFirst(t *testing.T) {
	m := NewManager(2)
	for salt := range uint32(2) {
		s := NewSequence(prompt(4, salt), 4, true)
		s.Allocate(m)
		s.Free(m)
	}
	NewSequence(prompt(4, 2), 4, true).Allocate(m)
	if NewSequence(prompt(4, 0), 4, true).Cached(m) != 0 {
		t.Error("the oldest block is still known")
	}
	if NewSequence(prompt(4, 1), 4, true).Cached(m) != 4 {
		t.Error("the younger block was forgotten")
	}
}

func TestAllocationThatDoesNotFitTakesNothing(t *testing.T) {
	m := NewManager(3)
	holder := NewSequence(prompt(8, 0), 4, true)
	holder.Allocate(m)
	if big := NewSequence(prompt(12, 5), 4, true); big.Allocate(m) {
		t.Error("three blocks fitted into one")
	}
	if m.Active() != 2 {
		t.Errorf("active = %d after a failed allocation, want 2", m.Active())
	}
}

func TestAppendTakesABlockWhenTheLastIsFull(t *testing.T) {
	m := NewManager(2)
	s := NewSequence(prompt(3, 0), 4, true)
	s.Allocate(m)
	for i, want := range []int{1, 2, 2, 2, 2} {
		if !s.Append(m, uint32(i)) || m.Active() != want {
			t.Fatalf("after %d appended tokens active = %d, want %d", i+1, m.Active(), want)
		}
	}
	if s.Append(m, 9) {
		t.Error("a third block was found in a cache of two")
	}
}

// Whatever the order of events, books balance: never more blocks than capacity,
// nothing active when everybody has left.
func TestBooksBalance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		m := NewManager(1 + random.IntN(40))
		sharing := round%2 == 0
		var running []*Sequence
		for range 400 {
			switch {
			case random.IntN(3) == 0:
				s := NewSequence(prompt(1+random.IntN(40), uint32(random.IntN(3))), 4, sharing)
				if s.Allocate(m) {
					running = append(running, s)
				}
			case len(running) > 0 && random.IntN(4) == 0:
				i := random.IntN(len(running))
				running[i].Free(m)
				running = append(running[:i], running[i+1:]...)
			case len(running) > 0:
				running[random.IntN(len(running))].Append(m, uint32(random.IntN(5)))
			}
			if m.Active()+m.Inactive() > m.Capacity() {
				t.Fatalf("round %d: %d active + %d inactive in a cache of %d", round, m.Active(), m.Inactive(), m.Capacity())
			}
		}
		for _, s := range running {
			s.Free(m)
		}
		if m.Active() != 0 {
			t.Fatalf("round %d: %d blocks still active", round, m.Active())
		}
	}
}
