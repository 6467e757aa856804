package openloop

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPoissonArrivals(t *testing.T) {
	arrivals := Poisson(50, time.Minute, 1)
	if n := len(arrivals); n < 2700 || n > 3300 {
		t.Errorf("%d arrivals in a minute at 50 a second", n)
	}
	if !slices.IsSorted(arrivals) || arrivals[len(arrivals)-1] >= time.Minute {
		t.Error("arrivals are not in order, or late")
	}
	if diff := cmp.Diff(arrivals, Poisson(50, time.Minute, 1)); diff != "" {
		t.Error("the same seed plans other times")
	}
	if cmp.Equal(arrivals, Poisson(50, time.Minute, 2)) {
		t.Error("another seed plans the same times")
	}
}

func TestSlowAnswersHoldNobodyBackAndCountFromThePlannedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrivals := []time.Duration{0, time.Second, 2 * time.Second}
		outcomes := Run(t.Context(), arrivals, func(n int) error {
			if n == 0 {
				time.Sleep(10 * time.Second)
				return errors.New("too late")
			}
			return nil
		})
		for n, want := range []time.Duration{10 * time.Second, 0, 0} {
			if got := outcomes[n].Latency(); got != want || outcomes[n].Sent != arrivals[n] {
				t.Errorf("request %d: sent at %v, latency %v, want %v", n, outcomes[n].Sent, got, want)
			}
		}
		if failed := Failed(outcomes); len(failed) != 1 || failed[0].Planned != 0 {
			t.Errorf("failed: %v", failed)
		}
	})
}

func TestTheEndWaitsForWhatIsUnderWayAndSendsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		outcomes := Run(ctx, []time.Duration{0, time.Second, 2 * time.Second}, func(int) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		if len(outcomes) != 2 || outcomes[1].Ended != 4*time.Second {
			t.Errorf("outcomes %+v", outcomes)
		}
	})
}
