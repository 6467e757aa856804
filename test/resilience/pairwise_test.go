package resilience

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// pairwise chooses cells of a matrix so that every pair of values of two dimensions is in
// one of them, and no more than it has to. A cell that rules refuse is never chosen, and
// pairs that are in no other are left out.
func pairwise(sizes []int, seed uint64, allowed func(cell []int) bool) [][]int {
	random := rand.New(rand.NewPCG(seed, 0))
	var all [][]int
	var walk func(cell []int)
	walk = func(cell []int) {
		if len(cell) < len(sizes) {
			for v := range sizes[len(cell)] {
				walk(append(append([]int(nil), cell...), v))
			}
			return
		}
		if allowed(cell) {
			all = append(all, cell)
		}
	}
	walk(nil)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	left := map[[4]int]bool{}
	for _, cell := range all {
		for _, p := range pairsOf(cell) {
			left[p] = true
		}
	}
	var chosen [][]int
	for len(left) > 0 {
		var best []int
		most := 0
		for _, cell := range all {
			n := 0
			for _, p := range pairsOf(cell) {
				if left[p] {
					n++
				}
			}
			if n > most {
				best, most = cell, n
			}
		}
		for _, p := range pairsOf(best) {
			delete(left, p)
		}
		chosen = append(chosen, best)
	}
	return chosen
}

// pairsOf are the pairs of a cell: two dimensions, and the value of each.
func pairsOf(cell []int) [][4]int {
	var all [][4]int
	for a := range cell {
		for b := a + 1; b < len(cell); b++ {
			all = append(all, [4]int{a, cell[a], b, cell[b]})
		}
	}
	return all
}

// TestEveryPairOfTheMatrixIsInACell holds for any seed, for the matrix that is run and
// for a larger one.
func TestEveryPairOfTheMatrixIsInACell(t *testing.T) {
	t.Parallel()
	anything := func([]int) bool { return true }
	for _, c := range []struct {
		sizes   []int
		allowed func([]int) bool
		most    int
	}{
		{[]int{len(shapes), len(orchestrators), len(isolations), len(events)}, allowed, len(shapes) * len(events)},
		{[]int{4, 3, 2, 13}, anything, 60},
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(c.sizes, seed), func(t *testing.T) {
				cells := pairwise(c.sizes, seed, c.allowed)
				seen := map[[4]int]bool{}
				for _, cell := range cells {
					if !c.allowed(cell) {
						t.Errorf("cell %v is not allowed", cell)
					}
					for _, p := range pairsOf(cell) {
						seen[p] = true
					}
				}
				for a, n := range c.sizes {
					for b := a + 1; b < len(c.sizes); b++ {
						for v := range n {
							for w := range c.sizes[b] {
								if !seen[[4]int{a, v, b, w}] {
									t.Errorf("value %d of dimension %d and %d of %d are in no cell", v, a, w, b)
								}
							}
						}
					}
				}
				if len(cells) > c.most {
					t.Errorf("%d cells", len(cells))
				}
			})
		}
	}
}
