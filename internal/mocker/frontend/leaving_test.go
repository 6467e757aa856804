package frontend

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// TestAFrontendLeavesInTheTimeThatItIsTold: others note it first, and answers are finished
// in the rest.
func TestAFrontendLeavesInTheTimeThatItIsTold(t *testing.T) {
	for rule, c := range map[string]struct {
		env  podenv.Env
		want []time.Duration
	}{
		"untold, it is bounded by the pod's grace": {podenv.Env{}, []time.Duration{5 * time.Second, 10 * time.Minute}},
		"told":          {podenv.Env{"DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "50"}, []time.Duration{5 * time.Second, 45 * time.Second}},
		"told to hurry": {podenv.Env{"DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS": "2"}, []time.Duration{2 * time.Second, 0}},
	} {
		t.Run(rule, func(t *testing.T) {
			config, err := NewConfig(launch.Program{Env: c.env})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, []time.Duration{config.Grace, config.Drain}); diff != "" {
				t.Errorf("it accepts, and drains (-want +got):\n%s", diff)
			}
		})
	}
}
