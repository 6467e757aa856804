package fit

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/optimize"
)

// minimise finds a low point of f near start, within the unit cube, by the
// downhill simplex method. It needs no derivative, which robust objectives do
// not have.
func minimise(f func([]float64) float64, start []float64, spread float64, steps int) ([]float64, float64) {
	inside := func(x []float64) []float64 {
		x = slices.Clone(x)
		for i := range x {
			x[i] = min(1, max(0, x[i]))
		}
		return x
	}
	within := func(x []float64) float64 { return f(inside(x)) }
	simplex, values := [][]float64{slices.Clone(start)}, []float64{within(start)}
	for i := range start {
		x := slices.Clone(start)
		if x[i]+spread <= 1 {
			x[i] += spread
		} else {
			x[i] -= spread
		}
		simplex, values = append(simplex, x), append(values, within(x))
	}
	result, err := optimize.Minimize(optimize.Problem{Func: within}, start,
		&optimize.Settings{MajorIterations: steps, Converger: &optimize.FunctionConverge{Absolute: 1e-7, Iterations: 40}},
		&optimize.NelderMead{InitialVertices: simplex, InitialValues: values})
	if result == nil {
		panic(fmt.Sprintf("fit: the simplex method refuses %d dimensions: %v", len(start), err))
	}
	return inside(result.X), result.F
}
