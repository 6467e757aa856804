package tenancy

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/scheme"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestRead(t *testing.T) {
	renewed := metav1.NewMicroTime(start)
	full := coordinationv1.LeaseSpec{HolderIdentity: new("x"), RenewTime: &renewed, LeaseDurationSeconds: new(int32(30))}
	without := func(change func(*coordinationv1.LeaseSpec)) coordinationv1.LeaseSpec {
		s := *full.DeepCopy()
		change(&s)
		return s
	}
	cases := map[string]struct {
		spec coordinationv1.LeaseSpec
		at   time.Time
		live bool
	}{
		"a claim holds":                      {full, start, true},
		"until its end":                      {full, start.Add(29 * time.Second), true},
		"and no longer":                      {full, start.Add(30 * time.Second), false},
		"a claim of nobody is none":          {without(func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("") }), start, false},
		"a claim that never began is none":   {without(func(s *coordinationv1.LeaseSpec) { s.RenewTime = nil }), start, false},
		"a claim without an end is none":     {without(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = nil }), start, false},
		"a claim of no duration is none":     {without(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = new(int32(0)) }), start, false},
		"a claim of negative length is none": {without(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = new(int32(-5)) }), start, false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := Read(&coordinationv1.Lease{Spec: c.spec}).Live(c.at); got != c.live {
				t.Errorf("live: %v", got)
			}
		})
	}
}

// world is a cluster with one graph, an operator for its namespace and a gate of
// one for the whole cluster.
type world struct {
	client.Client
	clock  *testingclock.FakeClock
	holder *Holder
	gate   *Gate
	passes int
	covers bool
}

func newWorld() *world {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g"}}
	w := &world{covers: true, clock: testingclock.NewFakeClock(start)}
	w.Client = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(dgd).WithStatusSubresource(dgd).Build()
	w.holder = &Holder{Direct: w.Client, Namespaces: []string{"team"}, Identity: "theirs", Duration: 30 * time.Second, Renew: 10 * time.Second, Clock: w.clock}
	w.gate = &Gate{
		Client: w.Client, Clock: w.clock, Covers: func(string) bool { return w.covers },
		Kind: func() (client.Object, *[]metav1.Condition) {
			o := &v1alpha1.DynamoGraphDeployment{}
			return o, &o.Status.Conditions
		},
		Next: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			w.passes++
			return reconcile.Result{}, nil
		}),
	}
	return w
}

// pass makes one and returns what the graph says about it.
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
	if err := w.holder.renewAll(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	if err := w.holder.renewAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ours, said, _ := w.pass(t); ours || said != "True NamespaceOperator" {
		t.Errorf("excluded and claimed: ours %v, said %q", ours, said)
	}
}

func TestAHolderGivesNamespacesBack(t *testing.T) {
	w := newWorld()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.holder.Start(ctx) }()
	for !w.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	lease := &coordinationv1.Lease{}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: LeaseName}, lease); err != nil || !Read(lease).Live(start) {
		t.Fatalf("lease %v: %v", lease.Spec, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: LeaseName}, lease); !apierrors.IsNotFound(err) {
		t.Errorf("the lease is still there: %v", err)
	}
}

func TestTwoHoldersDoNotShareANamespace(t *testing.T) {
	w := newWorld()
	if err := w.holder.renewAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := *w.holder
	other.Identity = "another"
	if err := other.renewAll(t.Context()); err == nil {
		t.Error("a namespace is held twice")
	}
	w.clock.Step(time.Minute)
	if err := other.renewAll(t.Context()); err != nil {
		t.Errorf("a claim that has ended: %v", err)
	}
}
