package lora

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/model"
)

// engines answer at once, or hang until they are let go.
type engines struct {
	mu      sync.Mutex
	calls   map[string]int
	release chan struct{}
}

func (e *engines) serve(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // or a client that gives up is not noticed
	e.mu.Lock()
	e.calls[r.URL.Hostname()]++
	e.mu.Unlock()
	if strings.HasPrefix(r.URL.Hostname(), "10.66.") {
		select {
		case <-e.release:
		case <-r.Context().Done():
			return
		}
	}
	fmt.Fprint(w, `{"status":"success"}`)
}

func (e *engines) callsTo(address string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[address]
}

func load(address string, patient bool) model.Call {
	return model.Call{
		Endpoint: model.Endpoint{Address: netip.MustParseAddr(address)},
		Task:     model.Task{Verb: model.Load, Adapter: model.Adapter{Name: "a", URI: "s3://b/a"}}, Patient: patient,
	}
}

// deadline is far longer than anything here takes.
const deadline = 2 * time.Minute

func await(t *testing.T, what string, outcomes <-chan model.Outcome, n int) []model.Outcome {
	t.Helper()
	var all []model.Outcome
	for len(all) < n {
		select {
		case o := <-outcomes:
			all = append(all, o)
		case <-time.After(deadline):
			t.Fatalf("%s: %d of %d came back", what, len(all), n)
		}
	}
	return all
}

// More engines hang than the quick lane has room for; all healthy ones are
// served before any of them is let go.
func TestEnginesThatHangHoldUpNobody(t *testing.T) {
	e := &engines{calls: map[string]int{}, release: make(chan struct{})}
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 2, Slow: 30, Patience: 20 * time.Millisecond, Timeout: deadline})
	healthy, hanging := make(chan model.Outcome, 20), make(chan model.Outcome, 8)
	for i := range 8 {
		caller.Start(load(fmt.Sprintf("10.66.0.%d", i), false), func(o model.Outcome) { hanging <- o })
	}
	for i := range 20 {
		caller.Start(load(fmt.Sprintf("10.1.0.%d", i), false), func(o model.Outcome) { healthy <- o })
	}
	for _, o := range await(t, "healthy engines", healthy, 20) {
		if o.Problem != "" {
			t.Errorf("outcome %+v", o)
		}
	}
	if len(hanging) > 0 {
		t.Error("an engine that hangs came back")
	}
	close(e.release)
	for _, o := range await(t, "the others", hanging, 8) {
		if o.Problem != "" {
			t.Errorf("outcome %+v", o)
		}
	}
	for i := range 20 {
		if n := e.callsTo(fmt.Sprintf("10.1.0.%d", i)); n != 1 {
			t.Errorf("healthy engine %d was called %d times", i, n)
		}
	}
}

// Where the slow lane is full as well, calls wait for it and leave the quick
// one to others.
func TestTheQuickLaneIsLeftEvenIfTheSlowOneIsFull(t *testing.T) {
	e := &engines{calls: map[string]int{}, release: make(chan struct{})}
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 1, Slow: 1, Patience: 20 * time.Millisecond, Timeout: deadline})
	hanging := make(chan model.Outcome, 3)
	for i := range 3 {
		caller.Start(load(fmt.Sprintf("10.66.0.%d", i), false), func(o model.Outcome) { hanging <- o })
	}
	for i := range 3 {
		for e.callsTo(fmt.Sprintf("10.66.0.%d", i)) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for len(caller.quick) > 0 || len(caller.slow) < 1 {
		time.Sleep(time.Millisecond)
	}
	close(e.release)
	for _, o := range await(t, "all", hanging, 3) {
		if o.Problem != "" {
			t.Errorf("outcome %+v", o)
		}
	}
}

func TestAPatientCallTakesNoPlaceAmongQuickOnes(t *testing.T) {
	e := &engines{calls: map[string]int{}, release: make(chan struct{})}
	// A quick call would hold the only place for as long as the test may take.
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 1, Slow: 1, Patience: deadline, Timeout: deadline})
	done := make(chan model.Outcome, 2)
	caller.Start(load("10.66.0.1", true), func(o model.Outcome) { done <- o })
	for e.callsTo("10.66.0.1") == 0 {
		time.Sleep(time.Millisecond)
	}
	caller.Start(load("10.1.0.1", false), func(o model.Outcome) { done <- o })
	await(t, "the quick call", done, 1)
	if e.callsTo("10.1.0.1") != 1 {
		t.Error("the patient call came back first")
	}
	close(e.release)
	await(t, "the patient call", done, 1)
}

func TestAProblemIsToldInTheSameWordsEachTime(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	caller := NewCaller(t.Context(), through(t, hang), Limits{Quick: 1, Slow: 1, Patience: time.Millisecond, Timeout: 2 * time.Second})
	done := make(chan model.Outcome, 1)
	caller.Start(load("10.1.0.1", false), func(o model.Outcome) { done <- o })
	if o := await(t, "the call", done, 1)[0]; o.Problem != "load a: no answer within 2s" || !o.Slow {
		t.Errorf("outcome %+v", o)
	}
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	caller = NewCaller(t.Context(), through(t, abort), Limits{Quick: 1, Slow: 1, Patience: deadline, Timeout: deadline})
	caller.Start(load("10.1.0.1", false), func(o model.Outcome) { done <- o })
	if o := await(t, "the call", done, 1)[0]; o.Problem != "load a: the connection broke" {
		t.Errorf("outcome %+v", o)
	}
}

func TestNothingComesBackAfterTheEnd(t *testing.T) {
	e := &engines{calls: map[string]int{}, release: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	caller := NewCaller(ctx, through(t, e.serve), Limits{Quick: 1, Slow: 1, Patience: deadline, Timeout: deadline})
	caller.Start(load("10.66.0.1", false), func(o model.Outcome) { t.Errorf("outcome %+v", o) })
	for e.callsTo("10.66.0.1") == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	for caller.inUse() > 0 {
		time.Sleep(time.Millisecond)
	}
}

func (c *Caller) inUse() int { return len(c.quick) + len(c.slow) }
