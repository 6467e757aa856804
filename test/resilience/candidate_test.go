package resilience

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// canary is the disaggregated graph under 1.x with four decode workers, of which a step
// gives one to a candidate; envs are further variables of all services.
func (w world) canary(steps, envs string) {
	w.Helper()
	text := disaggregated
	for was, is := range map[string]string{
		"vllm-runtime:1": "vllm-runtime:1.4.0", `value: "10"}`: `value: "10"}` + envs, "annotations: {": fmt.Sprintf("annotations: {%s: %s, ", v1alpha1.AnnotationRolloutSteps, steps),
		"subComponentType: decode\n      replicas: 2": "subComponentType: decode\n      replicas: 4",
	} {
		if !strings.Contains(text, was) {
			w.Fatalf("the graph has no %q to be replaced", was)
		}
		text = strings.ReplaceAll(text, was, is)
	}
	w.apply(text)
	w.answers()
}

// asks is so many requests a second, in an open loop, until it is stopped.
func (w world) asks(rate float64) (stop func() []openloop.Outcome) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.Cleanup(cancel)
	done := make(chan []openloop.Outcome, 1)
	go func() {
		done <- openloop.Run(ctx, openloop.Poisson(rate, time.Hour, *seed), func(n int) error { return w.ask(fmt.Sprintf("question %d", n), 20) })
	}()
	return func() []openloop.Outcome { cancel(); return <-done }
}

// envs gives both roles an image and variables beside those that they have.
func (w world) envs(tag, variables string) {
	w.Helper()
	one := fmt.Sprintf(`{"envs":[%s],"extraPodSpec":{"mainContainer":{"image":"vllm-runtime:%s"}}}`, variables, tag)
	w.patch(fmt.Sprintf(`{"decode":%[1]s,"prefill":%[1]s}`, one))
}

func (w world) rolledOut(what string, is func(*v1alpha1.RolloutStatus) bool) *v1alpha1.RolloutStatus {
	w.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	w.eventually("the rollout to be "+what, patient(func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key(graphName), dgd); err != nil {
			return err
		}
		if st := dgd.Status.Rollout; st == nil || dgd.Status.ObservedGeneration != dgd.Generation || !is(st) {
			return fmt.Errorf("%+v", st)
		}
		return nil
	}))
	return dgd.Status.Rollout
}

// TestABadCandidateIsAborted: with a step of ten minutes and 20 requests a second, each of
// two candidates is given up long before its end, in real time.
func TestABadCandidateIsAborted(t *testing.T) {
	for name, c := range map[string]struct {
		variable, told string
	}{
		"errors": {variable("MOCKER_ERROR_RATE", "0.05"), "of its requests fail"},
		"ttft":   {variable("MOCKER_TTFT_FACTOR", "2"), "time to first token"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "candidate-"+name, 10*time.Minute)
			w.canary(`"25% 10m"`, "")
			stop := w.asks(20)
			w.envs("1.5.0", c.variable)
			held := w.rolledOut("at its step", func(st *v1alpha1.RolloutStatus) bool { return st.Phase == string(generation.PhaseHeld) })
			st := w.rolledOut("aborted", func(st *v1alpha1.RolloutStatus) bool { return st.Phase == string(generation.PhaseAborted) })
			if st.Reason != string(analysis.AbortRegression) || !strings.Contains(st.Message, c.told) {
				t.Errorf("it says %s: %s", st.Reason, st.Message)
			}
			outcomes := stop()
			summary.Line(t, "a bad candidate (%s), step of 10 min: aborted %.0f s after it was at its step: %s; %d of %d requests failed",
				name, st.ProgressedAt.Sub(held.ProgressedAt.Time).Seconds(), st.Message, len(openloop.Failed(outcomes)), len(outcomes))
		})
	}
}

// TestAnEqualCandidateIsNotAborted: of both sides 1 % fail, five times over, in real time.
func TestAnEqualCandidateIsNotAborted(t *testing.T) {
	for n := range 5 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fmt.Sprint("equal-", n), 15*time.Minute)
			w.canary(`"25% 5m"`, `, {name: MOCKER_ERROR_RATE, value: "0.01"}`)
			stop := w.asks(8)
			w.envs("1.5.0", "")
			st := w.rolledOut("at its end", func(st *v1alpha1.RolloutStatus) bool {
				return st.Phase == string(generation.PhaseCompleted) || st.Phase == string(generation.PhaseAborted)
			})
			if st.Phase != string(generation.PhaseCompleted) {
				t.Errorf("it was aborted: %s", st.Message)
			}
			outcomes := stop()
			summary.Line(t, "an equal candidate: %s after %d requests, analysis %+v", st.Phase, len(outcomes), st.Analysis)
		})
	}
}
