package fault

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestRetry(t *testing.T) {
	invalid := New(Invalid, "Bad", "bad")
	plain := errors.New("connection refused")
	cases := map[string]struct {
		err  error
		want bool
	}{
		"nothing happened":                                {nil, false},
		"an unknown error is transient":                   {plain, true},
		"a user's mistake is not retried":                 {invalid, false},
		"wrapping keeps the class":                        {fmt.Errorf("service a: %w", invalid), false},
		"a missing API is awaited, not retried":           {New(Unsupported, "NoLWS", "no"), false},
		"a taken name is looked at again":                 {New(Conflict, "Taken", "x"), true},
		"one transient part makes the whole transient":    {errors.Join(invalid, plain), true},
		"faults joined are still faults":                  {errors.Join(invalid, invalid), false},
		"a wrapped transient error stays a transient one": {fmt.Errorf("apply: %w", plain), true},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := Retry(c.err); got != c.want {
				t.Errorf("Retry(%v) = %v, want %v", c.err, got, c.want)
			}
		})
	}
}

func TestWait(t *testing.T) {
	slow := New(Waiting, "Slow", "slow").Again(time.Minute)
	soon := New(Waiting, "Soon", "soon").Again(time.Second)
	cases := map[string]struct {
		err  error
		want time.Duration
	}{
		"nothing happened":                     {nil, 0},
		"a fault that a watch ends":            {New(Waiting, "Watched", "x"), 0},
		"a fault that only time ends":          {slow, time.Minute},
		"wrapping keeps the time":              {fmt.Errorf("model a: %w", slow), time.Minute},
		"of several the soonest counts":        {errors.Join(slow, soon, errors.New("x")), time.Second},
		"an unknown error has the queue's own": {errors.New("x"), 0},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := Wait(c.err); got != c.want {
				t.Errorf("Wait(%v) = %s, want %s", c.err, got, c.want)
			}
		})
	}
}
