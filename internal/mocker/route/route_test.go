package route

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/kv"
)

var three = []Candidate{{Instance: 1}, {Instance: 2}, {Instance: 3}}

func blocks(n int, salt uint32) []kv.ID {
	tokens := make([]uint32, 4*n)
	for i := range tokens {
		tokens[i] = uint32(i) + salt*1000
	}
	return kv.Chain(tokens, 4)
}

func TestRoundRobinTakesTurns(t *testing.T) {
	r := New(Options{Mode: RoundRobin})
	count := map[uint64]int{}
	for range 9 {
		c, _ := r.Choose(three, nil)
		count[c.Instance]++
	}
	for instance, n := range count {
		if n != 3 {
			t.Errorf("instance %d was chosen %d times of 9, want 3", instance, n)
		}
	}
}

func TestRandomReachesEverybody(t *testing.T) {
	r := New(Options{Mode: Random})
	seen := map[uint64]bool{}
	for range 200 {
		c, _ := r.Choose(three, nil)
		seen[c.Instance] = true
	}
	if len(seen) != 3 {
		t.Errorf("200 random choices reached %v", seen)
	}
}

func TestKVReturnsToTheWorkerThatKnowsThePrefix(t *testing.T) {
	r := New(Options{Mode: KV, OverlapWeight: 1})
	first, done := r.Choose(three, blocks(10, 1))
	done()
	for range 5 {
		again, done := r.Choose(three, append(blocks(10, 1), 42))
		done()
		if again != first {
			t.Errorf("a prompt with the same prefix went to %d, want %d", again.Instance, first.Instance)
		}
	}
}

func TestKVSpreadsUnrelatedLoad(t *testing.T) {
	r := New(Options{Mode: KV, OverlapWeight: 1})
	count := map[uint64]int{}
	for i := range 9 {
		c, _ := r.Choose(three, blocks(10, uint32(i)))
		count[c.Instance]++
	}
	if len(count) != 3 || count[1] != 3 {
		t.Errorf("9 requests under way were spread %v, want 3 each", count)
	}
}

func TestKVWithoutOverlapWeightLooksAtLoadAlone(t *testing.T) {
	r := New(Options{Mode: KV})
	first, _ := r.Choose(three, blocks(10, 1))
	second, _ := r.Choose(three, blocks(10, 1))
	if first == second {
		t.Errorf("both requests went to the busy worker %d", first.Instance)
	}
}

func TestLoadEndsWithTheRequest(t *testing.T) {
	r := New(Options{Mode: KV, OverlapWeight: 1})
	one := []Candidate{{Instance: 1, Blocks: 100}}
	c, done := r.Choose(one, blocks(9, 1))
	if got := r.Load(c); got != 0.1 {
		t.Errorf("load = %v, want 0.1", got)
	}
	done()
	done()
	if got := r.Load(c); got != 0 {
		t.Errorf("load after the end = %v, want 0", got)
	}
}
