package fault

import (
	"errors"
	"fmt"
	"testing"
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
