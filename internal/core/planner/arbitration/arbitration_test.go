package arbitration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDivide(t *testing.T) {
	one := []int{0}
	for _, x := range []struct {
		rule    string
		gpus    int
		claims  []Claim
		granted []Grant
	}{
		{"what fits is granted", 8, []Claim{{Name: "a", GPUs: 2, Wanted: 3, Held: 1, Budgets: one}}, []Grant{{Replicas: 3, Now: 3, LimitedBy: -1}}},
		{"equals get equal shares", 6, []Claim{
			{Name: "a", GPUs: 1, Wanted: 6, Budgets: one}, {Name: "b", GPUs: 1, Wanted: 3, Budgets: one},
		}, []Grant{{Replicas: 4, Now: 4, LimitedBy: 0}, {Replicas: 2, Now: 2, LimitedBy: 0}}},
		{"a floor comes before a priority", 4, []Claim{
			{Name: "a", Priority: 9, GPUs: 1, Wanted: 4, Budgets: one}, {Name: "b", GPUs: 1, Floor: 1, Wanted: 4, Budgets: one},
		}, []Grant{{Replicas: 3, Now: 3, LimitedBy: 0}, {Replicas: 1, Now: 1, LimitedBy: 0}}},
		{"who takes over waits for those who end", 4, []Claim{
			{Name: "a", Priority: 9, GPUs: 1, Wanted: 3, Budgets: one}, {Name: "b", GPUs: 1, Floor: 1, Wanted: 4, Held: 4, Budgets: one},
		}, []Grant{{Replicas: 3, LimitedBy: -1}, {Replicas: 1, Now: 1, LimitedBy: 0}}},
		{"who is short is told who holds", 4, []Claim{
			{Name: "a", GPUs: 1, Wanted: 3, Budgets: one}, {Name: "b", Priority: 9, GPUs: 1, Wanted: 4, Held: 4, Budgets: one},
		}, []Grant{{LimitedBy: 0, Holders: []string{"b"}}, {Replicas: 4, Now: 4, LimitedBy: -1}}},
		{"but not of what has its own name, and of others once", 6, []Claim{
			{Name: "a", GPUs: 1, Wanted: 3, Held: 1, Budgets: one}, {Name: "a", Priority: 9, GPUs: 1, Wanted: 1, Held: 1, Budgets: one},
			{Name: "b", Priority: 9, GPUs: 1, Wanted: 1, Held: 1, Budgets: one}, {Name: "c", Priority: 9, GPUs: 1, Wanted: 2, Held: 2, Budgets: one},
			{Name: "b", Priority: 9, GPUs: 1, Wanted: 2, Held: 2, Budgets: one},
		}, []Grant{
			{LimitedBy: 0, Holders: []string{"b", "c"}}, {Replicas: 1, Now: 1, LimitedBy: -1},
			{Replicas: 1, Now: 1, LimitedBy: -1}, {Replicas: 2, Now: 2, LimitedBy: -1}, {Replicas: 2, Now: 2, LimitedBy: -1},
		}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			if diff := cmp.Diff(x.granted, Divide(x.claims, []Budget{{GPUs: x.gpus}})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHugeNumberIsDividedAtOnce(t *testing.T) {
	for _, x := range []struct {
		rule    string
		claims  []Claim
		budgets []Budget
		granted []Grant
	}{
		{"who has no budget gets what it wants", []Claim{{Name: "a", GPUs: 1, Floor: 1, Wanted: math.MaxInt32}}, nil, []Grant{{Replicas: math.MaxInt32, Now: math.MaxInt32, LimitedBy: -1}}},
		{"a budget that is huge, too", []Claim{{Name: "a", GPUs: 1, Floor: 1, Wanted: math.MaxInt32, Budgets: []int{0}}}, []Budget{{GPUs: math.MaxInt64}}, []Grant{{Replicas: Most, Now: Most, LimitedBy: 0}}},
		{"two that share a huge one", []Claim{
			{Name: "a", GPUs: 1, Wanted: math.MaxInt32, Budgets: []int{0}}, {Name: "b", GPUs: 1, Wanted: math.MaxInt32, Budgets: []int{0}},
		}, []Budget{{GPUs: math.MaxInt64}}, []Grant{{Replicas: Most / 2, Now: Most / 2, LimitedBy: 0}, {Replicas: Most / 2, Now: Most / 2, LimitedBy: 0}}},
		{"a claim of no GPUs", []Claim{{Name: "a", Wanted: math.MaxInt32, Budgets: []int{0}}}, []Budget{{GPUs: 8}}, []Grant{{Replicas: math.MaxInt32, Now: math.MaxInt32, LimitedBy: -1}}},
		{"shares of a huge number are even", []Claim{
			{Name: "a", GPUs: 1, Floor: 1, Wanted: math.MaxInt32, Budgets: []int{0}}, {Name: "b", GPUs: 1, Floor: 1, Wanted: math.MaxInt32, Budgets: []int{0}},
		}, []Budget{{GPUs: 8}}, []Grant{{Replicas: 4, Now: 4, LimitedBy: 0}, {Replicas: 4, Now: 4, LimitedBy: 0}}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			var got []Grant
			done := make(chan struct{})
			go func() { got = Divide(x.claims, x.budgets); close(done) }()
			select {
			case <-done:
			case <-time.After(2 * time.Second):
				t.Fatal("it still divides after 2 s")
			}
			if diff := cmp.Diff(x.granted, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGrantsKeepBudgetsAndPriorities(t *testing.T) {
	for seed := range uint64(500) {
		chance := rand.New(rand.NewPCG(seed, 0))
		alike := chance.IntN(2) == 0
		budgets := []Budget{{"cluster", 5 + chance.IntN(40)}, {"team", 2 + chance.IntN(20)}}
		var claims []Claim
		for i := range 1 + chance.IntN(6) {
			c := Claim{Name: fmt.Sprint(i), Priority: chance.IntN(3), GPUs: 1 + chance.IntN(4), Wanted: chance.IntN(12), Budgets: []int{0}}
			c.Floor = chance.IntN(c.Wanted + 1)
			if alike {
				c.GPUs = 1
			}
			if chance.IntN(2) == 0 {
				c.Budgets = []int{0, 1}
			}
			claims = append(claims, c)
		}
		grants := Divide(claims, budgets)
		left := []int{budgets[0].GPUs, budgets[1].GPUs}
		for i, g := range grants {
			take(left, claims[i], g.Replicas)
		}
		for b, n := range left {
			if n < 0 {
				t.Fatalf("seed %d: budget %s is exceeded by %d", seed, budgets[b].Name, -n)
			}
		}
		for i, g := range grants {
			if g.Replicas < claims[i].Wanted && short(left, claims[i]) < 0 {
				t.Fatalf("seed %d: %+v is short of what is free: %v", seed, claims[i], left)
			}
			for j, other := range grants {
				// Where two draw on the same and have one size, a lower priority has nothing above
				// its floor while a higher one is short.
				if alike && len(claims[i].Budgets) == len(claims[j].Budgets) && claims[j].Priority < claims[i].Priority &&
					g.Replicas < claims[i].Wanted && other.Replicas > claims[j].Floor {
					t.Fatalf("seed %d: %+v is short at %d, and %+v has %d", seed, claims[i], g.Replicas, claims[j], other.Replicas)
				}
			}
		}
		if !alike {
			continue
		}
		for i := range claims {
			claims[i].Budgets = []int{0}
		}
		few := Divide(claims, budgets)
		budgets[0].GPUs++
		for i, g := range Divide(claims, budgets) {
			if g.Replicas < few[i].Replicas {
				t.Fatalf("seed %d: one GPU more took from %+v", seed, claims[i])
			}
		}
	}
}
