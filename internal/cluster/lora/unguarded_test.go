//go:build unguarded

package lora

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

// Each guard is needed: without it the attack that it stops succeeds.
func TestWithoutSharesOneNamespaceFillsTheSlowLane(t *testing.T) {
	t.Setenv(guard.Variable, string(NamespaceShares))
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 4, Slow: 10, SlowAfter: time.Millisecond, Timeout: deadline})
	hanging := make(chan loraplan.Outcome, 50)
	for i := range 50 {
		start(caller, "attacker", load(fmt.Sprintf("10.66.0.%d", i), true), func(o loraplan.Outcome) { hanging <- o })
	}
	for _, slow := caller.inUse(); slow < 10; _, slow = caller.inUse() {
		time.Sleep(time.Millisecond)
	}
	close(e.release)
	await(t, "all of them", hanging, 50)
}

func TestWithoutOneCallPerEngineAHangingOneFillsTheSlowLane(t *testing.T) {
	t.Setenv(guard.Variable, string(OneCallPerEngine)+","+string(NamespaceShares))
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 4, Slow: 10, SlowAfter: time.Millisecond, Timeout: deadline})
	hanging := make(chan loraplan.Outcome, 50)
	for range 50 {
		start(caller, "attacker", load("10.66.0.1", true), func(o loraplan.Outcome) { hanging <- o })
	}
	for _, slow := caller.inUse(); slow < 10; _, slow = caller.inUse() {
		time.Sleep(time.Millisecond)
	}
	close(e.release)
	await(t, "all of them", hanging, 50)
}

func TestWithoutAskingAgainAQueuedLoadIsMadeAfterItsModelIsGone(t *testing.T) {
	t.Setenv(guard.Variable, string(IntentBeforeDial))
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 1, Slow: 1, SlowAfter: deadline, Timeout: deadline})
	done := make(chan loraplan.Outcome, 1)
	caller.Start(Request{Namespace: "n", Call: load("10.1.0.1", false), Wanted: func(context.Context) bool { return false }, Done: func(o loraplan.Outcome) { done <- o }})
	if o := await(t, "the call", done, 1)[0]; o.Skipped || e.callsTo("10.1.0.1") != 1 {
		t.Errorf("outcome %+v, %d calls", o, e.callsTo("10.1.0.1"))
	}
}
