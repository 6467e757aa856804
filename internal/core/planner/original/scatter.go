package original

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/interp"
)

// scatter are measured points: for each context some usages of the cache.
type scatter struct {
	contexts []float64
	columns  []column
	points   []sample
	longest  float64
}

type sample struct{ usage, context, value float64 }

type column struct {
	low, high float64
	value     func(float64) float64
}

func newScatter(usage, context, value []float64) (scatter, float64, error) {
	var s scatter
	for i := range usage {
		if !(context[i] > 0) || math.IsNaN(usage[i]) || math.IsNaN(value[i]) {
			return s, 0, errors.New("a length that is not positive, or no number")
		}
		s.points = append(s.points, sample{usage[i], context[i], value[i]})
		s.longest = max(s.longest, context[i])
	}
	slices.SortFunc(s.points, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.context, b.context), cmp.Compare(a.usage, b.usage))
	})
	s.points = slices.CompactFunc(s.points, func(a, b sample) bool { return a.context == b.context && a.usage == b.usage })
	for from := 0; from < len(s.points); {
		to := from
		var x, y []float64
		for ; to < len(s.points) && s.points[to].context == s.points[from].context; to++ {
			x, y = append(x, s.points[to].usage), append(y, s.points[to].value)
		}
		c := column{low: x[0], high: x[len(x)-1], value: func(float64) float64 { return y[0] }}
		switch {
		case len(x) >= 4:
			var f interp.NotAKnotCubic
			if err := f.Fit(x, y); err != nil {
				return s, 0, err
			}
			c.value = f.Predict
		case len(x) >= 2:
			var f interp.PiecewiseLinear
			if err := f.Fit(x, y); err != nil {
				return s, 0, err
			}
			c.value = f.Predict
		}
		s.contexts, s.columns = append(s.contexts, s.points[from].context), append(s.columns, c)
		from = to
	}
	return s, s.longest, nil
}

// at is the value at a place: cubic along the cache's usage and straight between the
// two contexts beside it; where one of those was not measured that far, the value of
// the nearest point. The original puts cubic triangles between all points; profiles
// are columns, and along them the two agree.
func (s scatter) at(usage, context float64) float64 {
	i, exact := slices.BinarySearch(s.contexts, context)
	if exact && s.columns[i].has(usage) {
		return s.columns[i].value(usage)
	}
	if i > 0 && i < len(s.contexts) && s.columns[i-1].has(usage) && s.columns[i].has(usage) {
		share := (context - s.contexts[i-1]) / (s.contexts[i] - s.contexts[i-1])
		a, b := s.columns[i-1].value(usage), s.columns[i].value(usage)
		return a + share*(b-a)
	}
	return s.nearest(usage, context)
}

func (c column) has(usage float64) bool { return usage >= c.low && usage <= c.high }

func (s scatter) nearest(usage, context float64) float64 {
	best, distance := 0.0, math.Inf(1)
	for _, p := range s.points {
		// Tokens and shares as they are, as the original measures: the context decides.
		if d := math.Hypot(p.usage-usage, p.context-context); d < distance {
			best, distance = p.value, d
		}
	}
	return best
}
