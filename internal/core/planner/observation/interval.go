package observation

import "maps"

// Interval is what frontends have counted since it began, each for itself: a Prometheus has
// series of each, and who asks it for means gets one of each.
type Interval struct{ frontends map[string]Frontend }

// Frontend is what one has counted in a time, and in all of its own.
type Frontend struct{ Delta, Total Counters }

// Plus is an interval that goes on by a look.
func (i Interval) Plus(r Reading) Interval {
	next := Interval{map[string]Frontend{}}
	maps.Copy(next.frontends, i.frontends)
	for address, f := range r.Frontends {
		if before, known := next.frontends[address]; known {
			f.Delta = before.Delta.Plus(f.Delta)
		}
		next.frontends[address] = f
	}
	return next
}

// Ended are the requests that ended at any frontend.
func (i Interval) Ended() float64 {
	sum := 0.0
	for _, f := range i.frontends {
		sum += f.Delta.Ended
	}
	return sum
}

// Mean is that of the frontends' means, each of which counts as much as any other: NaN if one
// has nothing of the interval, and 0 if none ever had anything.
func (i Interval) Mean(of func(Counters) Histogram) float64 {
	sum, n := 0.0, 0.0
	for _, f := range i.frontends {
		if of(f.Total).Count > 0 {
			sum += of(f.Delta).Mean()
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}
