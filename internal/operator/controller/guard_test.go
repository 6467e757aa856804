package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/tracing"
)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "g"}}

func newGuard(t *testing.T, limit int, do reconcile.Func) (*Guard, *events.FakeRecorder) {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	graph := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "g", Generation: 3}}
	graph.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "AllServicesReady"}}
	recorder := events.NewFakeRecorder(10)
	return &Guard{
		Kind: v1alpha1.KindDynamoGraphDeployment, Do: do,
		Covers: func(namespace string) bool { return namespace == "a" },
		While: func(ctx context.Context, _ string) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		},
		Metrics: metric.New(prometheus.NewRegistry()), Tracer: tracing.Off(),
		Retries: &Retries{
			Max: limit, Object: &v1alpha1.DynamoGraphDeployment{}, Condition: v1alpha1.ConditionReady,
			Client: fake.NewClientBuilder().WithScheme(kinds).WithObjects(graph).WithStatusSubresource(graph).Build(), Events: recorder,
		},
	}, recorder
}

func TestAPanicIsAnErrorOfOnePass(t *testing.T) {
	g, _ := newGuard(t, 0, func(context.Context, reconcile.Request) (reconcile.Result, error) { panic("nil map") })
	if _, err := g.Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "nil map") {
		t.Errorf("error %v", err)
	}
}

func TestAPassThatHasBegunOutlivesTheOperator(t *testing.T) {
	operator, stop := context.WithCancel(t.Context())
	passes := 0
	g, _ := newGuard(t, 0, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		passes++
		stop()
		return reconcile.Result{}, ctx.Err()
	})
	if _, err := g.Reconcile(operator, request); err != nil {
		t.Errorf("a pass under way ended with %v", err)
	}
	if _, err := g.Reconcile(operator, request); !errors.Is(err, context.Canceled) || passes != 1 {
		t.Errorf("a pass that begins afterwards ended with %v", err)
	}
}

func TestAPassEndsAtOnceWhenSomebodyElseIsToWrite(t *testing.T) {
	lost := errors.New("lease lost")
	g, _ := newGuard(t, 0, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		<-ctx.Done()
		return reconcile.Result{}, ctx.Err()
	})
	g.While = func(ctx context.Context, namespace string) (context.Context, context.CancelFunc) {
		if namespace != "a" {
			t.Errorf("namespace %q", namespace)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(lost)
		return ctx, func() { cancel(nil) }
	}
	if _, err := g.Reconcile(t.Context(), request); !errors.Is(err, lost) {
		t.Errorf("error %v, want why it ended", err)
	}
}

func TestAPassEndsWithItsTime(t *testing.T) {
	late := errors.New("took too long")
	limited, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, late)
	defer cancel()
	g, _ := newGuard(t, 0, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		<-ctx.Done()
		return reconcile.Result{}, ctx.Err()
	})
	if _, err := g.Reconcile(limited, request); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, late) {
		t.Errorf("error %v", err)
	}
}

func TestNamespacesOfOthersAreLeftAlone(t *testing.T) {
	g, _ := newGuard(t, 0, func(context.Context, reconcile.Request) (reconcile.Result, error) {
		t.Error("a pass was made")
		return reconcile.Result{}, nil
	})
	other := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "b", Name: "g"}}
	if _, err := g.Reconcile(t.Context(), other); err != nil {
		t.Error(err)
	}
}

func TestWhatFailsTooOftenIsLeftAloneAndSaysSo(t *testing.T) {
	refused := errors.New("connection refused")
	g, recorder := newGuard(t, 2, func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, refused })
	if _, err := g.Reconcile(t.Context(), request); !errors.Is(err, refused) || errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("first failure: %v, want one that is retried", err)
	}
	if _, err := g.Reconcile(t.Context(), request); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("last failure: %v, want a terminal one", err)
	}
	select {
	case event := <-recorder.Events:
		if !strings.Contains(event, v1alpha1.ReasonRetriesExhausted) {
			t.Errorf("event %s", event)
		}
	default:
		t.Error("no event")
	}
	graph := &v1alpha1.DynamoGraphDeployment{}
	if err := g.Retries.Client.Get(t.Context(), request.NamespacedName, graph); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(graph.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonRetriesExhausted || !strings.Contains(ready.Message, "connection refused") {
		t.Errorf("condition %v", ready)
	}
	if _, err := g.Reconcile(t.Context(), request); errors.Is(err, reconcile.TerminalError(nil)) {
		t.Error("a change starts the count anew")
	}
}

func TestASuccessForgetsFailures(t *testing.T) {
	r := &Retries{Max: 2}
	for i, err := range []error{errors.New("x"), nil, errors.New("x")} {
		if r.Exhausted(request, err) {
			t.Errorf("given up after pass %d", i)
		}
	}
}

func TestReport(t *testing.T) {
	cases := map[string]struct {
		err      error
		after    time.Duration
		retry    bool
		terminal bool
	}{
		"all is well":                             {},
		"a transient error backs off":             {err: errors.New("x"), retry: true},
		"a user's mistake is not tried again":     {err: fault.New(fault.Invalid, "Bad", "x"), terminal: true},
		"a fault that a watch ends just waits":    {err: fault.New(fault.Waiting, "Later", "x")},
		"a fault that time ends is looked at":     {err: fault.New(fault.Waiting, "Later", "x").Again(time.Minute), after: time.Minute},
		"a missing API is told of by its watch":   {err: fault.New(fault.Unsupported, "NoLWS", "x")},
		"a taken name is looked at with back-off": {err: fault.New(fault.Conflict, "Taken", "x"), retry: true},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			graph := &v1alpha1.DynamoGraphDeployment{}
			result, err := Finish(t.Context(), nil, graph, &graph.Status, graph.Status, false, c.err)
			terminal := errors.Is(err, reconcile.TerminalError(nil))
			if result.RequeueAfter != c.after || terminal != c.terminal || (err != nil && !terminal) != c.retry {
				t.Errorf("Finish = %v, %v", result, err)
			}
		})
	}
}

func TestPatience(t *testing.T) {
	pressing := ""
	p, now := &StatusThrottle{Period: time.Second, UserWorkPending: func(namespace string) bool { return namespace == pressing }}, time.Now()
	later := now.Add(300 * time.Millisecond)
	graph := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", UID: "u"}}
	for _, step := range []struct {
		rule     string
		pressing string
		what     Urgency
		at       time.Time
		after    time.Duration
		place    int
	}{
		{"an object whose children do not rest is put off", "", InProgress, now, time.Second, queue.PriorityChild},
		{"and again for what is left of the time", "", InProgress, later, 700 * time.Millisecond, queue.PriorityChild},
		{"one whose children rest is reported", "", Settled, later, 0, 0},
		{"the next change is another wait", "", InProgress, later, time.Second, queue.PriorityChild},
		{"children that never rest are still reported", "", InProgress, later.Add(time.Second), 0, 0},
		{"what users wait for comes before a report", "n", Settled, now, 2 * time.Second, queue.PriorityIdle},
		{"and again for what is left of the longer time", "n", Settled, now.Add(time.Second), time.Second, queue.PriorityIdle},
		{"until nobody waits", "", Settled, now.Add(time.Second), 0, 0},
		{"what users of another namespace wait for does not", "another", Settled, now, 0, 0},
		{"or an error has to be known", "n", Urgent, now, 0, 0},
		{"a crowd", "n", InProgress, now, 2 * time.Second, queue.PriorityIdle},
		{"holds no report up for more than two seconds", "n", InProgress, now.Add(2 * time.Second), 0, 0},
	} {
		pressing = step.pressing
		result, off := p.Defer(graph, step.what, step.at)
		if off != (step.after > 0) || result.RequeueAfter != step.after {
			t.Errorf("%s: put off %v for %v, want %v", step.rule, off, result.RequeueAfter, step.after)
		}
		if place := result.Priority; off && (place == nil || *place != step.place) {
			t.Errorf("%s: at place %v, want %d", step.rule, place, step.place)
		}
	}
	if _, off := (*StatusThrottle)(nil).Defer(graph, InProgress, now); off {
		t.Error("without patience every pass is reported")
	}
}

func TestThoseThatWereDeletedWhileTheyWaitedAreForgotten(t *testing.T) {
	p, now := &StatusThrottle{Period: time.Second}, time.Now()
	p.Defer(&metav1.ObjectMeta{UID: "deleted"}, InProgress, now)
	p.Defer(&metav1.ObjectMeta{UID: "another"}, InProgress, now.Add(time.Hour))
	if _, kept := p.since["deleted"]; kept || len(p.since) != 1 {
		t.Errorf("waiting: %v", p.since)
	}
}
