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

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

// engines answer at once, or hang until they are let go.
type engines struct {
	mu      sync.Mutex
	calls   map[string]int
	release chan struct{}
	// now are the calls that each engine has at once, most the largest number.
	now, most map[string]int
	order     []string
}

func newEngines() *engines {
	return &engines{calls: map[string]int{}, release: make(chan struct{}), now: map[string]int{}, most: map[string]int{}}
}

func (e *engines) serve(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // or a client that gives up is not noticed
	host := r.URL.Hostname()
	e.mu.Lock()
	e.calls[host]++
	e.now[host]++
	e.most[host] = max(e.most[host], e.now[host])
	e.order = append(e.order, r.Method)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.now[host]--
		e.mu.Unlock()
	}()
	if strings.HasPrefix(host, "10.66.") {
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

func load(address string, patient bool) loraplan.Call {
	return loraplan.Call{
		Endpoint: loraplan.Endpoint{Address: netip.MustParseAddr(address)},
		Task:     loraplan.Task{Verb: loraplan.Load, Adapter: loraplan.Adapter{Name: "a", URI: "s3://b/a"}}, Patient: patient,
	}
}

// start makes a call that is wanted whenever its turn comes.
func start(c *Caller, namespace string, call loraplan.Call, done func(loraplan.Outcome)) {
	c.Start(Request{Namespace: namespace, Call: call, Done: done})
}

// deadline is far longer than anything here takes.
const deadline = 2 * time.Minute

func await(t *testing.T, what string, outcomes <-chan loraplan.Outcome, n int) []loraplan.Outcome {
	t.Helper()
	var all []loraplan.Outcome
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
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 2, Slow: 30, SlowAfter: 20 * time.Millisecond, Timeout: deadline})
	healthy, hanging := make(chan loraplan.Outcome, 20), make(chan loraplan.Outcome, 8)
	for i := range 8 {
		start(caller, "n", load(fmt.Sprintf("10.66.0.%d", i), false), func(o loraplan.Outcome) { hanging <- o })
	}
	for i := range 20 {
		start(caller, "n", load(fmt.Sprintf("10.1.0.%d", i), false), func(o loraplan.Outcome) { healthy <- o })
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
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 1, Slow: 1, SlowAfter: 20 * time.Millisecond, Timeout: deadline})
	hanging := make(chan loraplan.Outcome, 3)
	for i := range 3 {
		start(caller, "n", load(fmt.Sprintf("10.66.0.%d", i), false), func(o loraplan.Outcome) { hanging <- o })
	}
	for i := range 3 {
		for e.callsTo(fmt.Sprintf("10.66.0.%d", i)) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for quick, slow := caller.inUse(); quick > 0 || slow < 1; quick, slow = caller.inUse() {
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
	e := newEngines()
	// A quick call would hold the only place for as long as the test may take.
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 1, Slow: 1, SlowAfter: deadline, Timeout: deadline})
	done := make(chan loraplan.Outcome, 2)
	start(caller, "n", load("10.66.0.1", true), func(o loraplan.Outcome) { done <- o })
	for e.callsTo("10.66.0.1") == 0 {
		time.Sleep(time.Millisecond)
	}
	start(caller, "n", load("10.1.0.1", false), func(o loraplan.Outcome) { done <- o })
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
	caller := NewCaller(t.Context(), through(t, hang), Limits{Quick: 1, Slow: 1, SlowAfter: time.Millisecond, Timeout: 2 * time.Second})
	done := make(chan loraplan.Outcome, 1)
	start(caller, "n", load("10.1.0.1", false), func(o loraplan.Outcome) { done <- o })
	if o := await(t, "the call", done, 1)[0]; o.Problem != "load a: no answer within 2s" || !o.Slow || !o.Unsure {
		t.Errorf("outcome %+v", o)
	}
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	caller = NewCaller(t.Context(), through(t, abort), Limits{Quick: 1, Slow: 1, SlowAfter: deadline, Timeout: deadline})
	start(caller, "n", load("10.1.0.1", false), func(o loraplan.Outcome) { done <- o })
	if o := await(t, "the call", done, 1)[0]; o.Problem != "load a: the connection broke" || !o.Unsure {
		t.Errorf("outcome %+v", o)
	}
	refuse := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"error","message":"no"}`) }
	caller = NewCaller(t.Context(), through(t, refuse), Limits{Quick: 1, Slow: 1, SlowAfter: deadline, Timeout: deadline})
	start(caller, "n", load("10.1.0.1", false), func(o loraplan.Outcome) { done <- o })
	if o := await(t, "the call", done, 1)[0]; o.Problem != "load a: the engine answered error: no" || o.Unsure {
		t.Errorf("outcome %+v", o)
	}
}

// TestACallThatIsCutShortAndNotRepeatedMayHaveHadItsEffect: the quick lane gave it
// up, and its model went before there was room in the slow one.
func TestACallThatIsCutShortAndNotRepeatedMayHaveHadItsEffect(t *testing.T) {
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 1, Slow: 1, SlowAfter: 20 * time.Millisecond, Timeout: deadline})
	first, second := make(chan loraplan.Outcome, 1), make(chan loraplan.Outcome, 1)
	start(caller, "n", load("10.66.0.1", true), func(o loraplan.Outcome) { first <- o })
	for e.callsTo("10.66.0.1") == 0 {
		time.Sleep(time.Millisecond)
	}
	asked := 0
	caller.Start(Request{
		Namespace: "n", Call: load("10.66.0.2", false), Done: func(o loraplan.Outcome) { second <- o },
		Wanted: func(context.Context) bool { asked++; return asked == 1 },
	})
	for quick, slow := caller.inUse(); e.callsTo("10.66.0.2") == 0 || quick > 0 || slow < 1; quick, slow = caller.inUse() {
		time.Sleep(time.Millisecond)
	}
	close(e.release)
	await(t, "the call in the slow lane", first, 1)
	if o := await(t, "the call that waited for it", second, 1)[0]; !o.Skipped || !o.Unsure {
		t.Errorf("outcome %+v", o)
	}
}

func TestNothingComesBackAfterTheEnd(t *testing.T) {
	e := newEngines()
	ctx, cancel := context.WithCancel(t.Context())
	caller := NewCaller(ctx, through(t, e.serve), Limits{Quick: 1, Slow: 1, SlowAfter: deadline, Timeout: deadline})
	start(caller, "n", load("10.66.0.1", false), func(o loraplan.Outcome) { t.Errorf("outcome %+v", o) })
	for e.callsTo("10.66.0.1") == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	for quick, slow := caller.inUse(); quick+slow > 0; quick, slow = caller.inUse() {
		time.Sleep(time.Millisecond)
	}
}

func (c *Caller) inUse() (quick, slow int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quick.total, c.slow.total
}

// One engine hangs and many models want something of it: it takes one place, and is
// asked for one thing at a time.
func TestAnEngineIsCalledForOneModelAtATime(t *testing.T) {
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 2, Slow: 4, SlowAfter: time.Millisecond, Timeout: deadline})
	const models = 200
	hanging, healthy := make(chan loraplan.Outcome, models), make(chan loraplan.Outcome, 20)
	for range models {
		start(caller, "n", load("10.66.0.1", false), func(o loraplan.Outcome) { hanging <- o })
	}
	for range 20 {
		start(caller, "n", load("10.1.0.1", false), func(o loraplan.Outcome) { healthy <- o })
	}
	await(t, "a healthy engine of the same namespace", healthy, 20)
	if n := e.callsTo("10.66.0.1"); n > 2 { // once in the quick lane, and again in the slow one if that was full
		t.Errorf("the engine that hangs was called %d times", n)
	}
	close(e.release)
	await(t, "the engine that hung", hanging, models)
	for engine, most := range e.most {
		if most > 1 {
			t.Errorf("engine %s had %d calls at once", engine, most)
		}
	}
	if len(caller.engines) > 0 {
		t.Errorf("%d engines are remembered that nobody calls", len(caller.engines))
	}
}

// A namespace full of engines that hang has its share of the slow lane, and others
// find room.
func TestNamespacesShareTheSlowLane(t *testing.T) {
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 4, Slow: 10, SlowAfter: time.Millisecond, Timeout: deadline})
	hanging, others := make(chan loraplan.Outcome, 50), make(chan loraplan.Outcome, 10)
	for i := range 50 {
		start(caller, "attacker", load(fmt.Sprintf("10.66.0.%d", i), true), func(o loraplan.Outcome) { hanging <- o })
	}
	for _, slow := caller.inUse(); slow < 5; _, slow = caller.inUse() {
		time.Sleep(time.Millisecond)
	}
	for i := range 10 {
		start(caller, fmt.Sprintf("tenant-%d", i%2), load(fmt.Sprintf("10.1.0.%d", i), true), func(o loraplan.Outcome) { others <- o })
	}
	await(t, "slow calls of other namespaces", others, 10)
	if _, slow := caller.inUse(); slow != 5 || len(hanging) > 0 {
		t.Errorf("the namespace whose engines hang has %d of 10 places, and %d calls came back", slow, len(hanging))
	}
	close(e.release)
	await(t, "all of them", hanging, 50)
}

func TestACallThatNobodyWantsAnyMoreIsNotMade(t *testing.T) {
	e := newEngines()
	caller := NewCaller(t.Context(), through(t, e.serve), Limits{Quick: 1, Slow: 1, SlowAfter: deadline, Timeout: deadline})
	first, second, third := make(chan loraplan.Outcome, 1), make(chan loraplan.Outcome, 1), make(chan loraplan.Outcome, 1)
	start(caller, "n", load("10.66.0.1", false), func(o loraplan.Outcome) { first <- o })
	for e.callsTo("10.66.0.1") == 0 {
		time.Sleep(time.Millisecond)
	}
	wanted := true
	caller.Start(Request{Namespace: "n", Call: load("10.66.0.1", false), Wanted: func(context.Context) bool { return wanted }, Done: func(o loraplan.Outcome) { second <- o }})
	unload := load("10.66.0.1", false)
	unload.Task.Verb = loraplan.Unload
	start(caller, "n", unload, func(o loraplan.Outcome) { third <- o })
	wanted = false // its model was deleted while the engine was busy
	close(e.release)
	await(t, "the call under way", first, 1)
	if o := await(t, "the call that was queued", second, 1)[0]; !o.Skipped {
		t.Errorf("outcome %+v", o)
	}
	await(t, "the unload after it", third, 1)
	if diff := cmp.Diff([]string{http.MethodPost, http.MethodDelete}, e.order); diff != "" {
		t.Error("calls: -want +got", diff)
	}
}
