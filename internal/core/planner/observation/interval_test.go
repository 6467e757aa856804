package observation

import (
	"math"
	"testing"
	"time"
)

func TestAnInterval(t *testing.T) {
	// A frontend with so many requests, of so many tokens each.
	counted := func(n, tokens float64) Counters {
		return Counters{Began: n, Ended: n, Input: Histogram{Sum: n * tokens, Count: n}}
	}
	type looks []map[string]Counters
	for _, x := range []struct {
		rule        string
		looks       looks
		ended, mean float64
	}{
		{"a frontend's mean is of what it counted since", looks{{"a": counted(5, 100)}, {"a": counted(8, 100)}, {"a": counted(10, 200)}}, 5, 300},
		{"frontends count alike, whatever they served", looks{{"a": counted(1, 0), "b": counted(1, 0)}, {"a": counted(2, 50), "b": counted(100, 297)}}, 100, 200},
		{"one that is idle has no mean, and so none has", looks{{"a": counted(1, 0), "b": counted(7, 1)}, {"a": counted(2, 50), "b": counted(7, 1)}}, 1, math.NaN()},
		{"one that never served has no series", looks{{"a": counted(1, 0), "b": {}}, {"a": counted(2, 50), "b": {}}}, 1, 100},
		{"where none ever served it is 0", looks{{"a": {}}, {"a": {}}}, 0, 0},
		{"one that is gone had its part", looks{{"a": counted(1, 0), "b": counted(1, 0)}, {"a": counted(2, 50), "b": counted(2, 150)}, {"a": counted(3, 100)}}, 3, 225},
	} {
		t.Run(x.rule, func(t *testing.T) {
			var traffic Traffic
			var i Interval
			for n, frontends := range x.looks {
				var r Reading
				r, traffic = traffic.Next(Look{At: time.Duration(n) * time.Second, Frontends: frontends}, time.Second)
				i = i.Plus(r)
			}
			mean := i.Mean(func(c Counters) Histogram { return c.Input })
			if i.Ended() != x.ended || mean != x.mean && !(math.IsNaN(mean) && math.IsNaN(x.mean)) {
				t.Errorf("%v ended with %v tokens, want %v with %v", i.Ended(), mean, x.ended, x.mean)
			}
		})
	}
}
