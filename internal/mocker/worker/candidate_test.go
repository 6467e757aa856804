package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// ask sends a request for two tokens and returns what came back, a failure too.
func ask(t *testing.T, host string) string {
	t.Helper()
	response, err := http.Post("http://"+host+":8888/v1/rpc/generate", "application/json", strings.NewReader(`{"id":"r","token_ids":[1,2,3],"max_tokens":2}`))
	if err != nil {
		return err.Error() // it may have died of it
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return fmt.Sprint(string(text), err)
}

func serves(host string) func() bool {
	return func() bool { return answers("http://"+host+":8888/v1/rpc/generate") != 0 }
}

// counted is what a rollout would read of the worker.
func counted(t *testing.T, host string) analysis.Counters {
	t.Helper()
	response, err := http.Get("http://" + host + ":9090/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	c, err := analysis.Parse(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACandidateThatFailsIsSeenToFail(t *testing.T) {
	type sums struct{ requests, errors, ttft, itl float64 }
	for name, c := range map[string]struct {
		rate string
		want sums
	}{
		"one that works":          {"0", sums{requests: 3, ttft: 3, itl: 3}},
		"one that fails them all": {"1", sums{requests: 3, errors: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			host := address(10 + len(name)%2)
			serving(t, host, "", podenv.Env{"DYN_SYSTEM_PORT": "9090", "MOCKER_ERROR_RATE": c.rate})
			eventually(t, "it serves", serves(host))
			for range 3 {
				if failed := strings.Contains(ask(t, host), "MOCKER_ERROR_RATE"); failed != (c.want.errors > 0) {
					t.Errorf("a request failed: %v", failed)
				}
			}
			eventually(t, "it has counted", func() bool { return counted(t, host).Requests == c.want.requests })
			got := counted(t, host)
			if diff := cmp.Diff(c.want, sums{got.Requests, got.Errors, got.TTFT.Samples(), got.ITL.Samples()}, cmp.AllowUnexported(sums{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestACandidateCrashesAfterSoManyRequests(t *testing.T) {
	host := address(12)
	log, stop := serving(t, host, "", podenv.Env{"MOCKER_CRASH_AFTER_REQUESTS": "2"})
	eventually(t, "it serves", serves(host))
	ask(t, host)
	if strings.Contains(log.String(), "engine died") {
		t.Error("it died of the first")
	}
	ask(t, host)
	eventually(t, "it dies of the second", func() bool { return strings.Contains(log.String(), "engine died") })
	if got := stop(); got != ExitEngineDied {
		t.Errorf("it ended with %d", got)
	}
}

// TestACandidateThatNeverRegisters is ready all the same, as one is whose card routers
// refuse.
func TestACandidateThatNeverRegisters(t *testing.T) {
	host := address(13)
	log, stop := serving(t, host, "", podenv.Env{"DYN_SYSTEM_PORT": "9090", "MOCKER_REGISTRATION_DELAY": "1h", "MOCKER_DRAIN_LINGER": "0s"})
	eventually(t, "it is ready", func() bool { return answers("http://"+host+":9090/health") == http.StatusOK })
	if !strings.Contains(log.String(), "registering later") {
		t.Errorf("it says\n%s", log)
	}
	if got := stop(); got != 0 {
		t.Errorf("it ended with %d", got)
	}
}

func TestAFirstTokenThatTakesLonger(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		factor float64
		ctx    context.Context
		want   error
	}{
		"as long as it takes":                     {1, gone, nil},
		"twice as long":                           {2, t.Context(), nil},
		"nobody waits for whom the user has left": {1e6, gone, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Worker{knobs: Knobs{TTFTFactor: c.factor}}
			if err := w.dawdle(c.ctx, time.Millisecond); !errors.Is(err, c.want) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestKnobsThatMakeNoSense(t *testing.T) {
	for _, env := range []podenv.Env{{"MOCKER_ERROR_RATE": "5%"}, {"MOCKER_ERROR_RATE": "1.1"}, {"MOCKER_TTFT_FACTOR": "0.5"}, {"MOCKER_CRASH_AFTER_REQUESTS": "some"}} {
		if _, err := NewKnobs(env); err == nil {
			t.Errorf("%v was accepted", env)
		}
	}
}
