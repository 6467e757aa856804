package supervisor

import (
	"testing"
	"time"
)

func TestNextPause(t *testing.T) {
	for name, tc := range map[string]struct{ last, ran, want time.Duration }{
		"the first restart comes soon":            {0, time.Second, 200 * time.Millisecond},
		"a program that fails again waits longer": {200 * time.Millisecond, time.Second, 400 * time.Millisecond},
		"the pause has an upper bound":            {8 * time.Second, time.Second, 10 * time.Second},
		"a healthy run makes up for past ones":    {10 * time.Second, 30 * time.Second, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nextPause(tc.last, tc.ran); got != tc.want {
				t.Errorf("nextPause(%v, %v) = %v, want %v", tc.last, tc.ran, got, tc.want)
			}
		})
	}
}
