package fit

import (
	"slices"

	"gonum.org/v1/gonum/mat"
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
func (j *joint) linearise(x []float64) (curve *mat.SymDense, slope []float64) {
	curve, slope = mat.NewSymDense(len(x), nil), make([]float64, len(x))
	add := func(i, k int, v float64) { curve.SetSym(i, k, curve.At(i, k)+v) }
	for n := range j.blocks {
		b := &j.blocks[n]
		b.linearise(x, add, slope)
		for i := range b.params {
			at, far, w := b.at+i, j.astray(b, i, x), 1/b.width[i]
			add(at, at, w*w)
			slope[at] += w * far
			if up := b.parent[i]; up != none {
				add(up, up, w*w)
				add(at, up, -w*w)
				slope[up] -= w * far
			}
		}
	}
	return curve, slope
}

// linearise adds the part of a block's rows.
func (b *block) linearise(x []float64, add func(i, k int, v float64), slope []float64) {
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
			for l := range i + 1 {
				add(b.at+i, b.at+l, part*moves[l][r])
			}
		}
	}
}

// solveLinear solves a symmetric system, its diagonal raised by the share damp.
// A system that has no one solution has no step.
func solveLinear(a *mat.SymDense, right []float64, damp float64) []float64 {
	raised := mat.NewSymDense(len(right), nil)
	raised.CopySym(a)
	for i := range right {
		raised.SetSym(i, i, a.At(i, i)*(1+damp))
	}
	var root mat.Cholesky
	var out mat.VecDense
	if !root.Factorize(raised) || root.SolveVecTo(&out, mat.NewVecDense(len(right), right)) != nil {
		return nil
	}
	return out.RawVector().Data
}
