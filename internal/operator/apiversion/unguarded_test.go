//go:build unguarded

package apiversion

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestAVersionIsServedUnconvertedWithoutItsGuard sees what TestNothingIsServed, when
// a conversion fails, and TestAVersionIsTakenBackWhenConversionsFailAndTriedAgainLater
// see stopped: a version that nobody can read.
func TestAVersionIsServedUnconvertedWithoutItsGuard(t *testing.T) {
	t.Setenv(guard.Variable, string(Unconverted))
	w := newWorld(t)
	w.converts = errConversion
	for _, when := range []string{"at first", "after conversions have failed for long"} {
		if err := w.Publish(t.Context()); err == nil {
			t.Errorf("%s: reads of it work", when)
		}
		if n := w.served(t); n != 4 {
			t.Errorf("%s: stopped by something else: %d served", when, n)
		}
		w.clock.Step(2 * w.Timing.Failing)
	}
	if w.probes != 0 {
		t.Errorf("%d conversions were tried", w.probes)
	}
}
