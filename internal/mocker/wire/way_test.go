package wire

import (
	"testing"
	"time"
)

func TestTheWayIsLearnedFromCalls(t *testing.T) {
	for name, c := range map[string]struct {
		seen []time.Duration
		want time.Duration
	}{
		"nothing is known at first":             {nil, 0},
		"one call is a beginning":               {[]time.Duration{8 * time.Millisecond}, time.Millisecond},
		"a stalled call counts for no more":     {[]time.Duration{time.Minute}, longestWay / 8},
		"a worker that claims more counts as 0": {[]time.Duration{8 * time.Millisecond, -time.Second}, 875 * time.Microsecond},
	} {
		var w way
		for _, seen := range c.seen {
			w.learn(seen)
		}
		if got := w.usual(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
