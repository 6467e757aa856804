package fit

import (
	"math"
	"slices"
)

// solve finds the unknowns by damped Gauss-Newton steps from the prior. It draws
// no lots: the same rows give the same constants.
func (j *joint) solve(steps int) []float64 {
	x := slices.Clone(j.origin)
	j.bound(x)
	value, damp := j.objective(x), 1e-3
	for range steps {
		curve, slope := j.linearise(x)
		gain := 0.0
		for range 8 { // until a step is short enough to lead down
			next := slices.Clone(x)
			for i, s := range solveLinear(curve, slope, damp) {
				next[i] -= s
			}
			j.bound(next)
			if v := j.objective(next); v < value {
				x, value, gain = next, v, value-v
				damp = max(1e-6, damp/4)
				break
			}
			damp *= 6
		}
		if gain < 1e-4 {
			break
		}
	}
	return x
}

// linearise is half of the objective's slope at x, and of its curvature as far
// as first derivatives tell.
func (j *joint) linearise(x []float64) (curve [][]float64, slope []float64) {
	curve, slope = make([][]float64, len(x)), make([]float64, len(x))
	for i := range curve {
		curve[i] = make([]float64, len(x))
	}
	for n := range j.blocks {
		b := &j.blocks[n]
		b.linearise(x, curve, slope)
		for i := range b.params {
			at, far, w := b.at+i, j.astray(b, i, x), 1/b.width[i]
			curve[at][at] += w * w
			slope[at] += w * far
			if up := b.parent[i]; up != none {
				curve[up][up] += w * w
				curve[at][up] -= w * w
				curve[up][at] -= w * w
				slope[up] -= w * far
			}
		}
	}
	return curve, slope
}

// linearise adds the part of a block's rows.
func (b *block) linearise(x []float64, curve [][]float64, slope []float64) {
	if len(b.rows) == 0 {
		return
	}
	const little = 0.01
	errs := b.errors(x)
	moves := make([][]float64, len(b.params))
	for i := range moves {
		near := slices.Clone(x)
		near[b.at+i] += little
		moves[i] = b.errors(near)
		for r := range errs {
			moves[i][r] = (moves[i][r] - errs[r]) / little
		}
	}
	for r, e := range errs {
		w := b.counts(r) / (noise*noise + e*e)
		for i := range moves {
			part := w * moves[i][r]
			slope[b.at+i] += part * e
			for l := range moves {
				curve[b.at+i][b.at+l] += part * moves[l][r]
			}
		}
	}
}

// solveLinear solves a symmetric system, its diagonal raised by the share damp,
// by Cholesky's method.
func solveLinear(a [][]float64, right []float64, damp float64) []float64 {
	n := len(right)
	root := make([][]float64, n)
	for i := range root {
		root[i] = make([]float64, i+1)
		for j := range root[i] {
			s := a[i][j]
			if i == j {
				s *= 1 + damp
			}
			for k := range j {
				s -= root[i][k] * root[j][k]
			}
			if i == j {
				root[i][i] = math.Sqrt(max(s, 1e-12))
			} else {
				root[i][j] = s / root[j][j]
			}
		}
	}
	out := slices.Clone(right)
	for i := range n {
		for k := range i {
			out[i] -= root[i][k] * out[k]
		}
		out[i] /= root[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			out[i] -= root[k][i] * out[k]
		}
		out[i] /= root[i][i]
	}
	return out
}
