package fit

import (
	"math"
	"slices"
)

// minimise finds a low point of f near start, within the unit cube, by the
// downhill simplex method. It needs no derivative, which robust objectives do
// not have.
func minimise(f func([]float64) float64, start []float64, spread float64, steps int) ([]float64, float64) {
	n := len(start)
	type corner struct {
		x []float64
		y float64
	}
	clamp := func(x []float64) []float64 {
		for i := range x {
			x[i] = min(1, max(0, x[i]))
		}
		return x
	}
	at := func(x []float64) corner { return corner{clamp(x), f(clamp(x))} }
	simplex := []corner{at(slices.Clone(start))}
	for i := range n {
		x := slices.Clone(start)
		if x[i]+spread <= 1 {
			x[i] += spread
		} else {
			x[i] -= spread
		}
		simplex = append(simplex, at(x))
	}
	sort := func() {
		slices.SortStableFunc(simplex, func(a, b corner) int {
			switch {
			case a.y < b.y:
				return -1
			case a.y > b.y:
				return 1
			}
			return 0
		})
	}
	// Coefficients that adapt to the dimension keep the method moving in 20 of them.
	expand, contract, shrink := 1+2/float64(n), 0.75-1/(2*float64(n)), 1-1/float64(n)
	for range steps {
		sort()
		worst := simplex[n]
		if worst.y-simplex[0].y < 1e-7 {
			break
		}
		centre := make([]float64, n)
		for _, c := range simplex[:n] {
			for i, v := range c.x {
				centre[i] += v / float64(n)
			}
		}
		along := func(by float64) corner {
			x := make([]float64, n)
			for i := range x {
				x[i] = centre[i] + by*(centre[i]-worst.x[i])
			}
			return at(x)
		}
		reflected := along(1)
		switch {
		case reflected.y < simplex[0].y:
			if expanded := along(expand); expanded.y < reflected.y {
				reflected = expanded
			}
			simplex[n] = reflected
		case reflected.y < simplex[n-1].y:
			simplex[n] = reflected
		default:
			by := contract
			if reflected.y >= worst.y {
				by = -contract
			}
			contracted := along(by)
			if contracted.y < math.Min(reflected.y, worst.y) {
				simplex[n] = contracted
				continue
			}
			for i := 1; i <= n; i++ {
				x := make([]float64, n)
				for j := range x {
					x[j] = simplex[0].x[j] + shrink*(simplex[i].x[j]-simplex[0].x[j])
				}
				simplex[i] = at(x)
			}
		}
	}
	sort()
	return simplex[0].x, simplex[0].y
}
