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

// coverage is how many pairs of values some cells cover, how many the cells do that are
// allowed, and how many pairs there are at all.
func coverage(sizes []int, cells [][]int, allowed func(cell []int) bool) (covered, possible, all int) {
	seen := map[[4]int]bool{}
	for _, cell := range cells {
		for _, p := range pairsOf(cell) {
			seen[p] = true
		}
	}
	could := map[[4]int]bool{}
	var walk func(cell []int)
	walk = func(cell []int) {
		if len(cell) == len(sizes) {
			for _, p := range pairsOf(cell) {
				could[p] = could[p] || allowed(cell)
			}
			return
		}
		for v := range sizes[len(cell)] {
			walk(append(append([]int(nil), cell...), v))
		}
	}
	walk(nil)
	for _, can := range could {
		if can {
			possible++
		}
	}
	return len(seen), possible, len(could)
}

// TestEveryPairOfTheMatrixIsInACell holds for any seed, for the matrix that is run and
// for another without rules: every pair that an allowed cell has.
func TestEveryPairOfTheMatrixIsInACell(t *testing.T) {
	t.Parallel()
	anything := func([]int) bool { return true }
	for _, c := range []struct {
		sizes   []int
		allowed func([]int) bool
		most    int
		// impossible is how many pairs no cell may have.
		impossible int
	}{
		{dimensions(), allowed, 65, 2},
		{[]int{4, 3, 2, 13}, anything, 60, 0},
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(c.sizes, seed), func(t *testing.T) {
				cells := pairwise(c.sizes, seed, c.allowed)
				for _, cell := range cells {
					if !c.allowed(cell) {
						t.Errorf("cell %v is not allowed", cell)
					}
				}
				if covered, possible, all := coverage(c.sizes, cells, c.allowed); covered != possible || possible < all-c.impossible {
					t.Errorf("%d of %d pairs are covered, and %d there are", covered, possible, all)
				}
				if covered, _, _ := coverage(c.sizes, cells[:1], c.allowed); covered != len(c.sizes)*(len(c.sizes)-1)/2 {
					t.Errorf("one cell covers %d pairs", covered)
				}
				if len(cells) > c.most {
					t.Errorf("%d cells", len(cells))
				}
			})
		}
	}
}
