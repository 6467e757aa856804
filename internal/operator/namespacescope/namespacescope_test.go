package namespacescope

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestAClaimHoldsFromWhenWeSawIt(t *testing.T) {
	spec := func(renewed time.Time) coordinationv1.LeaseSpec {
		at := metav1.NewMicroTime(renewed)
		return coordinationv1.LeaseSpec{HolderIdentity: new("x"), RenewTime: &at, LeaseDurationSeconds: new(int32(30))}
	}
	without := func(change func(*coordinationv1.LeaseSpec)) coordinationv1.LeaseSpec {
		s := spec(start)
		change(&s)
		return s
	}
	cases := map[string]struct {
		spec coordinationv1.LeaseSpec
		at   time.Time
		live bool
	}{
		"a claim holds":                          {spec(start), start, true},
		"until its end":                          {spec(start), start.Add(29 * time.Second), true},
		"and no longer":                          {spec(start), start.Add(30 * time.Second), false},
		"a clock behind ours ends nothing":       {spec(start.Add(-5 * time.Minute)), start.Add(29 * time.Second), true},
		"a clock ahead of ours prolongs nothing": {spec(start.Add(5 * time.Minute)), start.Add(30 * time.Second), false},
		"a claim of nobody is none":              {without(func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("") }), start, false},
		"a claim that never began is none":       {without(func(s *coordinationv1.LeaseSpec) { s.RenewTime = nil }), start, false},
		"a claim without an end is none":         {without(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = nil }), start, false},
		"a claim of no duration is none":         {without(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = new(int32(0)) }), start, false},
		"a claim of negative length is none":     {without(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = new(int32(-5)) }), start, false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Spec: c.spec}
			if got := (Seen{}).see(lease, start).Live(c.at); got != c.live {
				t.Errorf("live: %v", got)
			}
		})
	}
}

// world is a cluster with one graph, an operator for its namespace and a gate of
// one for the whole cluster.
type world struct {
	client.WithWatch
	clock  *testingclock.FakeClock
	holder *Holder
	gate   *Gate
	passes int
	covers bool
}

var times = Times{Duration: 30 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}

func newWorld() *world {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g"}}
	w := &world{covers: true, clock: testingclock.NewFakeClock(start)}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(dgd).WithStatusSubresource(dgd).
		WithIndex(&coordinationv1.Lease{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	w.holder = w.another("theirs")
	view := &View{Direct: w.WithWatch, Clock: w.clock}
	w.gate = &Gate{
		Client: w.WithWatch, Clock: w.clock, Covers: func(string) bool { return w.covers },
		View: view, Writer: &Writer{Permits: []Permit{view.Left}},
		Kind: &v1alpha1.DynamoGraphDeployment{},
		Next: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			w.passes++
			return reconcile.Result{}, nil
		}),
	}
	return w
}

// another is somebody else who wants the namespace.
func (w *world) another(name string) *Holder {
	h := &Holder{
		Direct: w.WithWatch, Lease: types.NamespacedName{Namespace: "team", Name: LeaseName},
		Identity: NewIdentity("ops", name, ""), Times: times, Clock: w.clock,
	}
	h.init()
	return h
}

func (w *world) try(t *testing.T, h *Holder) bool {
	t.Helper()
	err := h.attempt(t.Context())
	if _, taken := errors.AsType[held](err); err != nil && !taken {
		t.Fatal(err)
	}
	return err == nil
}

// pass makes one reconcile and returns what the graph says about it.
func (w *world) pass(t *testing.T) (ours bool, said string, result reconcile.Result) {
	t.Helper()
	before := w.passes
	key := types.NamespacedName{Namespace: "team", Name: "g"}
	result, err := w.gate.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := w.Get(t.Context(), key, dgd); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionManaged); c != nil {
		said = string(c.Status) + " " + c.Reason
	}
	return w.passes > before, said, result
}

func TestGate(t *testing.T) {
	w := newWorld()
	if ours, said, _ := w.pass(t); !ours || said != "" {
		t.Errorf("nobody claims: ours %v, said %q", ours, said)
	}
	w.try(t, w.holder)
	w.clock.Step(ViewAge) // the watch is late, and yet
	ours, said, result := w.pass(t)
	if ours || said != "True NamespaceOperator" {
		t.Errorf("claimed: ours %v, said %q", ours, said)
	}
	if result.RequeueAfter < 30*time.Second || result.RequeueAfter > time.Minute {
		t.Errorf("looks again in %s, want the end of the claim", result.RequeueAfter)
	}
	w.clock.Step(result.RequeueAfter)
	if ours, said, _ := w.pass(t); !ours || said != "" {
		t.Errorf("the claim has ended: ours %v, said %q", ours, said)
	}
	w.covers = false
	if ours, said, _ := w.pass(t); ours || said != "False NotManaged" {
		t.Errorf("excluded: ours %v, said %q", ours, said)
	}
	w.try(t, w.holder)
	w.clock.Step(ViewAge)
	if ours, said, _ := w.pass(t); ours || said != "True NamespaceOperator" {
		t.Errorf("excluded and claimed: ours %v, said %q", ours, said)
	}
	w.covers = true
	if err := w.holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.clock.Step(ViewAge)
	if ours, said, _ := w.pass(t); !ours || said != "" {
		t.Errorf("released: ours %v, said %q", ours, said)
	}
}

func TestNoPassBeginsBeforeTheLeaseIsHeld(t *testing.T) {
	w := newWorld()
	began := make(chan struct{}, 10)
	w.holder.Times.HandOver = HandOver
	w.holder.Begin = func() { began <- struct{}{} }
	claims := &Claims{Holders: map[string]*Holder{"team": w.holder}}
	w.gate.View, w.gate.Writer = nil, &Writer{Permits: []Permit{claims.Left}, Terms: []func(string) context.Context{claims.Term}}
	if ours, _, result := w.pass(t); ours || result.RequeueAfter != 0 {
		t.Errorf("nothing is held: ours %v, %v", ours, result)
	}
	if err := claims.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	step := func(d time.Duration) {
		for !w.clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		w.clock.Step(d)
	}
	waiting := func() bool { _, err := w.holder.term.Left(); return err != nil }
	for waiting() {
		time.Sleep(time.Millisecond)
	}
	if ours, _, _ := w.pass(t); ours {
		t.Error("a pass was made while the operator for the cluster may still write")
	}
	for len(began) == 0 {
		step(time.Second)
		time.Sleep(time.Millisecond)
	}
	if ours, _, _ := w.pass(t); !ours {
		t.Error("held, and no pass was made")
	}
	ctx, cancel := w.gate.Writer.While(t.Context(), "team")
	defer cancel()
	if err := claims.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrNotWriter) {
		t.Errorf("passes end with %v", context.Cause(ctx))
	}
	if ours, _, _ := w.pass(t); ours {
		t.Error("a pass was made after the Lease was given back")
	}
	if _, err := claims.Left(t.Context(), "other"); !errors.Is(err, ErrNotWriter) {
		t.Errorf("a namespace of somebody else: %v", err)
	}
}

// A process that was stopped renews its Lease before it sees that the term had lapsed;
// what it turned away in between has to be woken.
func TestATermThatLapsedUnseenBeginsAnew(t *testing.T) {
	w := newWorld()
	began := make(chan struct{}, 10)
	w.holder.Begin = func() { began <- struct{}{} }
	go func() { _ = w.holder.Run(t.Context()) }() // it ends with the test
	<-began
	for w.clock.Waiters() < 2 { // the end of the term, and the next renewal
		time.Sleep(time.Millisecond)
	}
	w.clock.Step(times.deadline() + time.Second)
	select {
	case <-began:
	case <-time.After(10 * time.Second):
		t.Error("nobody was told that the holder may write again")
	}
}

func TestWhoIsNext(t *testing.T) {
	t.Run("two of one version do not share a namespace", func(t *testing.T) {
		w := newWorld()
		other := w.another("theirs")
		if !w.try(t, w.holder) || w.try(t, other) {
			t.Error("a namespace is held twice, or by nobody")
		}
		if other.Rival() != "" {
			t.Error("a Lease that nobody was seen to renew may be of somebody who died")
		}
		w.clock.Step(10 * time.Second)
		if !w.try(t, w.holder) || w.try(t, other) || other.Rival() != "ops/theirs" {
			t.Errorf("rival %q", other.Rival())
		}
		loser, winner := &Claims{Holders: map[string]*Holder{"team": other}}, &Claims{Holders: map[string]*Holder{"team": w.holder}}
		if err := loser.Idle(); err == nil || !strings.Contains(err.Error(), "namespace team already has an operator, ops/theirs") || winner.Idle() != nil {
			t.Errorf("who lost says %v, who has it %v", err, winner.Idle())
		}
	})
	t.Run("who comes later waits for a whole duration that they have seen", func(t *testing.T) {
		w := newWorld()
		w.try(t, w.holder)
		w.clock.Step(time.Hour)
		other := w.another("b")
		if w.try(t, other) {
			t.Error("taken at first sight")
		}
		w.clock.Step(29 * time.Second)
		if w.try(t, other) {
			t.Error("taken too soon")
		}
		w.clock.Step(time.Second)
		if !w.try(t, other) || w.try(t, w.holder) {
			t.Error("a dead holder is not succeeded")
		}
	})
	t.Run("what is given back is free at once", func(t *testing.T) {
		w := newWorld()
		other := w.another("b")
		w.try(t, w.holder)
		w.try(t, other)
		if err := w.holder.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.holder.Left(); !errors.Is(err, ErrNotWriter) {
			t.Errorf("who gave it back: %v", err)
		}
		if !w.try(t, other) {
			t.Error("it is not")
		}
		if err := w.holder.Release(t.Context()); err != nil || w.try(t, w.another("c")) {
			t.Errorf("another's was given back: %v", err)
		}
	})
	t.Run("replicas of one election succeed each other at once, others after a while", func(t *testing.T) {
		w := newWorld()
		next, other := w.another("b"), w.another("c")
		w.holder.Identity.ElectedBy, next.Identity.ElectedBy, other.Identity.ElectedBy = "lease a/x", "lease a/x", "lease b/x"
		w.try(t, w.holder)
		if w.try(t, other) || !w.try(t, next) {
			t.Error("the wrong one succeeded")
		}
		if err := next.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.try(t, other) {
			t.Error("an installation that is being updated lost its place")
		}
		w.clock.Step(30 * time.Second)
		if !w.try(t, other) {
			t.Error("an installation that is gone keeps its place")
		}
	})
}

func TestANamespaceThatIsBeingDeletedIsFinished(t *testing.T) {
	w := newWorld()
	gone := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, LeaseName, errors.New("is being terminated"))
	gone.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.holder.Direct = interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return gone },
	})
	if err := w.holder.attempt(t.Context()); err == nil {
		t.Fatal("a Lease was made")
	}
	if _, err := w.holder.Left(); err != nil {
		t.Errorf("what is there cannot be removed: %v", err)
	}
	w.clock.Step(ViewAge)
	if _, err := w.holder.Left(); !errors.Is(err, ErrNotWriter) {
		t.Errorf("nobody has said for %s that it is still being deleted: %v", ViewAge, err)
	}
}

func TestATermEnds(t *testing.T) {
	newTerm := func() (*Term, *testingclock.FakeClock) {
		clock := testingclock.NewFakeClock(start)
		return &Term{Lease: "a/b", Deadline: 20 * time.Second, Clock: clock}, clock
	}
	ended := func(t *testing.T, term *Term, ctx context.Context) {
		t.Helper()
		<-ctx.Done()
		if _, err := term.Left(); !errors.Is(err, ErrNotWriter) || !errors.Is(context.Cause(ctx), ErrNotWriter) {
			t.Errorf("left %v, cause %v", err, context.Cause(ctx))
		}
	}
	t.Run("when it is not renewed", func(t *testing.T) {
		term, clock := newTerm()
		term.Renewed(clock.Now())
		ctx := term.Context()
		clock.Step(15 * time.Second)
		term.Renewed(clock.Now())
		clock.Step(15 * time.Second)
		if left, err := term.Left(); err != nil || left != 5*time.Second || ctx.Err() != nil {
			t.Errorf("left %v, %v", left, err)
		}
		clock.Step(5 * time.Second)
		ended(t, term, ctx)
	})
	t.Run("counted from the request, not from its answer", func(t *testing.T) {
		term, clock := newTerm()
		began := clock.Now()
		clock.Step(19 * time.Second)
		term.Renewed(began)
		if left, err := term.Left(); err != nil || left != time.Second {
			t.Errorf("left %v, %v", left, err)
		}
		clock.Step(time.Second)
		if _, err := term.Left(); err == nil {
			t.Error("it lasts")
		}
		term.Renewed(began)
		if _, err := term.Left(); err == nil {
			t.Error("an answer that came too late began another")
		}
	})
	t.Run("before a timer has fired, as after a pause of the process", func(t *testing.T) {
		term, clock := newTerm()
		term.Renewed(clock.Now().Add(-20*time.Second + time.Nanosecond))
		term.renewed = clock.Now().Add(-time.Hour)
		if _, err := term.Left(); !errors.Is(err, ErrNotWriter) {
			t.Errorf("left %v", err)
		}
	})
	t.Run("and the next begins anew", func(t *testing.T) {
		term, clock := newTerm()
		term.Renewed(clock.Now())
		first := term.Context()
		term.Lost(errors.New("gone"))
		ended(t, term, first)
		clock.Step(time.Minute)
		term.Renewed(clock.Now())
		clock.Step(time.Second)
		if term.Context().Err() != nil || term.Lasting() != time.Second {
			t.Errorf("lasting %v", term.Lasting())
		}
	})
	t.Run("by the wall clock, when the machine slept", func(t *testing.T) {
		slept := time.Now()
		if got := elapsed(slept, slept.Add(0)); got != 0 {
			t.Errorf("elapsed %v", got)
		}
		if got := elapsed(slept.Round(0).Add(-time.Hour), slept); got < time.Hour {
			t.Errorf("elapsed %v", got)
		}
	})
}

// answering is an API server that counts.
type answering struct {
	sent  []string
	block chan struct{}
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.sent = append(a.sent, r.Method+" "+r.URL.Path)
	if a.block != nil {
		<-a.block
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestOnlyAWriterWrites(t *testing.T) {
	const graph = "/apis/nvidia.com/v1alpha1/namespaces/team/dynamographdeployments/g"
	cases := map[string]struct {
		method, url string
		sent        bool
	}{
		"it reads":                               {http.MethodGet, graph, true},
		"it does not change an object":           {http.MethodPatch, graph, false},
		"nor its status":                         {http.MethodPatch, graph + "/status?fieldManager=dynamo-operator", false},
		"nor one of the cluster":                 {http.MethodPost, "/apis/scheduling.run.ai/v2/queues", false},
		"nor delete one":                         {http.MethodDelete, graph, false},
		"it asks a question by a POST":           {http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", true},
		"it records events":                      {http.MethodPost, "/apis/events.k8s.io/v1/namespaces/team/events", true},
		"a note needs what all writes need":      {http.MethodPatch, graph + "/status?fieldManager=" + noter, false},
		"it does not even write to a collection": {http.MethodDelete, "/api/v1/namespaces/team/configmaps", false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			server := &answering{}
			w := &Writer{Permits: []Permit{func(context.Context, string) (time.Duration, error) { return 0, ErrNotWriter }}}
			request, err := http.NewRequestWithContext(t.Context(), c.method, "https://server"+c.url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := w.Transport(server).RoundTrip(request)
			if err == nil {
				response.Body.Close()
			}
			if sent := len(server.sent) == 1; sent != c.sent || sent != (err == nil) || err != nil && !errors.Is(err, ErrNotWriter) {
				t.Errorf("sent %v, %v", server.sent, err)
			}
		})
	}
}

func TestANamespaceThatAnotherHoldsIsNotWrittenTo(t *testing.T) {
	w := newWorld()
	server := &answering{}
	through := w.gate.Writer.Transport(server)
	send := func(url string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://server"+url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := through.RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	const inTeam, elsewhere = "/api/v1/namespaces/team/services/s", "/api/v1/namespaces/other/services/s"
	if err := send(inTeam); err != nil {
		t.Errorf("free: %v", err)
	}
	w.try(t, w.holder)
	w.clock.Step(ViewAge)
	if err := send(inTeam); !errors.Is(err, ErrNotWriter) || !strings.Contains(err.Error(), "ops/theirs") {
		t.Errorf("held: %v", err)
	}
	if err := send(inTeam + "/status?fieldManager=" + noter); err != nil {
		t.Errorf("who holds it cannot be said: %v", err)
	}
	if err := send(elsewhere); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
	// The API server does not answer: what was known serves for a while.
	broken := errors.New("no answer")
	w.gate.View.Direct = interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
	})
	w.clock.Step(ViewAge - time.Second)
	if err := send(elsewhere); err != nil {
		t.Errorf("known a moment ago: %v", err)
	}
	w.clock.Step(time.Second)
	if err := send(elsewhere); !errors.Is(err, broken) {
		t.Errorf("nothing is known any more: %v", err)
	}
}

func TestALateListDoesNotUndoWhatTheWatchTold(t *testing.T) {
	view := &View{Clock: testingclock.NewFakeClock(start)}
	at := metav1.NewMicroTime(start)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: LeaseName, ResourceVersion: "20"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("x"), RenewTime: &at, LeaseDurationSeconds: new(int32(30))},
	}
	view.Observe(lease)
	view.Direct = interceptor.NewClient(newWorld().WithWatch, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.SetResourceVersion("10")
			return nil
		},
	})
	if s, err := view.Claim(t.Context(), "team"); err != nil || !s.Live(start) {
		t.Errorf("claim %v, %v", s, err)
	}
	gone := lease.DeepCopy()
	gone.ResourceVersion = "21"
	view.Forget(gone)
	if s, err := view.Claim(t.Context(), "team"); err != nil || s.Live(start) {
		t.Errorf("claim %v, %v", s, err)
	}
}

func TestClosingWaitsForTheLastWrite(t *testing.T) {
	server := &answering{block: make(chan struct{})}
	w := &Writer{}
	request := func() *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://server/api/v1/namespaces/a/services/s", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	answered := make(chan error, 1)
	go func() {
		response, err := w.Transport(server).RoundTrip(request())
		if err == nil {
			response.Body.Close()
		}
		answered <- err
	}()
	for w.sending.TryLock() {
		w.sending.Unlock()
		time.Sleep(time.Millisecond)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := w.Close(short); err == nil {
		t.Error("closed while a write is under way")
	}
	close(server.block)
	if err := <-answered; err != nil {
		t.Errorf("a write that was under way: %v", err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	response, err := w.Transport(server).RoundTrip(request())
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, ErrNotWriter) {
		t.Errorf("a write afterwards: %v", err)
	}
}
