//go:build unguarded

package console

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestAttacksWorkWithoutTheirGuard: what TestAttacksAreRefused refuses is answered
// once its guard is left out.
func TestAttacksWorkWithoutTheirGuard(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.rule, func(t *testing.T) {
			t.Setenv(guard.Variable, string(a.without))
			c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
			status, _ := do(t, a.request(c, c.enter()))
			if status != a.works {
				t.Errorf("answered with %d, want %d", status, a.works)
			}
			if changed := restartID(t, c) != ""; changed != (a.without == GuardChanges) {
				t.Errorf("changed the graph: %v", changed)
			}
		})
	}
	t.Run("a URL that was used before", func(t *testing.T) {
		t.Setenv(guard.Variable, string(GuardOnce))
		c := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
		c.enter()
		c.enter()
	})
	t.Run("another user with a stolen cookie", func(t *testing.T) {
		t.Setenv(guard.Variable, string(GuardUser))
		c := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
		if got := readAsOther(t, c); got != "200" {
			t.Errorf("another user's request: %s", got)
		}
	})
}
