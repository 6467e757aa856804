// Package arbitration divides GPUs among those who want replicas, whoever asks for
// them: floors first, then by priority, and among equals so that the share of what is
// wanted is as even as it can be. It says what may exist; it starts and ends nothing.
package arbitration

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Most is the most GPUs that a budget has, which no cluster reaches. They are divided one
// by one: whoever writes a number must not keep others waiting until somebody has counted
// that far.
const Most = 1 << 17

// Claim is what somebody wants.
type Claim struct {
	Name string
	// Priority decides before everything but floors; higher comes first.
	Priority int
	// GPUs of one replica.
	GPUs int
	// Floor and Wanted are replicas.
	Floor, Wanted int
	// Held are the replicas that have GPUs now: ready, starting and ending ones.
	Held int
	// Ending are those of them that end: they have GPUs, and serve no grant.
	Ending int
	// Budgets are the indices of those that the claim counts against.
	Budgets []int
}

// Budget is a number of GPUs that several share.
type Budget struct {
	Name string
	GPUs int
}

// Grant is what a claim gets.
type Grant struct {
	// Replicas is its share, Now as much of it as there are free GPUs for.
	Replicas, Now int
	// LimitedBy is the index of the budget that stands between the claim and what it
	// wants, -1 where none does; Holders are the names of those who hold its GPUs, the
	// largest holder first.
	LimitedBy int
	Holders   []string
}

// Divide is the grants of claims, in their order. A GPU that somebody wants and that fits
// is never left over. Where all replicas have the same size more GPUs take from nobody;
// where sizes differ a large replica that now fits may displace small ones of its priority.
func Divide(claims []Claim, budgets []Budget) []Grant {
	left := make([]int, len(budgets))
	free := make([]int, len(budgets))
	for i, b := range budgets {
		left[i], free[i] = min(b.GPUs, Most), min(b.GPUs, Most)
	}
	grants := make([]Grant, len(claims))
	order := make([]int, len(claims))
	for i := range claims {
		order[i] = i
		grants[i].LimitedBy = -1
		take(free, claims[i], claims[i].Held)
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(-cmp.Compare(claims[a].Priority, claims[b].Priority), cmp.Compare(claims[a].Name, claims[b].Name), cmp.Compare(a, b))
	})
	for _, i := range order {
		c := claims[i]
		grants[i].Replicas = min(c.Floor, c.Wanted, fits(left, c))
		take(left, c, grants[i].Replicas)
	}
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && claims[order[to]].Priority == claims[order[from]].Priority {
			to++
		}
		share(claims, grants, left, order[from:to])
		from = to
	}
	for _, i := range order {
		grants[i].Now = now(claims[i], grants[i].Replicas, free)
		if by := short(left, claims[i]); grants[i].Replicas < claims[i].Wanted && by >= 0 {
			grants[i].LimitedBy, grants[i].Holders = by, holders(claims, i, by)
		}
	}
	return grants
}

// share gives one replica at a time to the one of equals that has the smallest share of
// what it wants, until nothing fits. Who is left alone gets the rest at once.
func share(claims []Claim, grants []Grant, left, equals []int) {
	for {
		next, lack := -1, 0
		for _, i := range equals {
			c := claims[i]
			if grants[i].Replicas >= c.Wanted || short(left, c) >= 0 {
				continue
			}
			lack++
			if next < 0 || grants[i].Replicas*claims[next].Wanted < grants[next].Replicas*c.Wanted {
				next = i
			}
		}
		if next < 0 {
			return
		}
		n := 1
		if lack == 1 { // nobody else can take any
			n = min(claims[next].Wanted-grants[next].Replicas, fits(left, claims[next]))
		}
		grants[next].Replicas += n
		take(left, claims[next], n)
	}
}

// fits is how many more replicas budgets have room for: without one, or without GPUs,
// as many as anybody can want.
func fits(left []int, c Claim) int {
	n := math.MaxInt
	for _, b := range c.Budgets {
		if c.GPUs > 0 {
			n = min(n, max(0, left[b]/c.GPUs))
		}
	}
	return n
}

// short is the first budget that has no room for one more replica, or -1.
func short(left []int, c Claim) int {
	for _, b := range c.Budgets {
		if left[b] < c.GPUs {
			return b
		}
	}
	return -1
}

func take(left []int, c Claim, replicas int) {
	for _, b := range c.Budgets {
		left[b] -= replicas * c.GPUs
	}
}

// now is as much of a grant as can exist: what is there already, and what GPUs that
// nobody holds are enough for. Who gets less than it holds releases at once.
func now(c Claim, granted int, free []int) int {
	n := min(granted, max(0, c.Held-c.Ending))
	more := min(granted-n, fits(free, c))
	take(free, c, more)
	return n + more
}

// holders are the others that hold GPUs of a budget. Who has several claims is one.
func holders(claims []Claim, but, budget int) []string {
	held := map[string]int{}
	for _, c := range claims {
		if c.Name != claims[but].Name && c.Held*c.GPUs > 0 && slices.Contains(c.Budgets, budget) {
			held[c.Name] += c.Held * c.GPUs
		}
	}
	return slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(-cmp.Compare(held[a], held[b]), cmp.Compare(a, b))
	})
}
