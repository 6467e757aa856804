//go:build unguarded

package guard

import (
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Variable lists the guards that are left out, separated by commas.
const Variable = "DYNAMO_GUARDS_OFF"

// Off reports whether the environment leaves the check out.
func (g Guard) Off() bool {
	return slices.Contains(strings.Split(os.Getenv(Variable), ","), string(g))
}

// ClockVariable is how wrong the clock is, such as -5m.
const ClockVariable = "DYNAMO_CLOCK_OFFSET"

// Clock is this machine's, or one that is wrong by what the environment says.
func Clock() clock.WithTickerAndDelayedExecution {
	offset, err := time.ParseDuration(os.Getenv(ClockVariable))
	if err != nil {
		return clock.RealClock{}
	}
	return wrong{offset: offset}
}

type wrong struct {
	clock.RealClock
	offset time.Duration
}

func (w wrong) Now() time.Time                  { return time.Now().Add(w.offset) }
func (w wrong) Since(t time.Time) time.Duration { return w.Now().Sub(t) }
