package componentdeployment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// stage is a cluster without a server, that fails when it is told to, with a
// component and the reconciler before it. What the API server does with what is
// written is tested in test/server.
type stage struct {
	*testing.T
	client     client.Client
	reconciler *Reconciler
	writes     []string
	// refuse is the kind of object that cannot be written, unread the kind that
	// cannot be read from the server.
	refuse, unread string
}

// indexes hands the reconciler's indexes to a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i.WithIndex(object, field, of)
	return nil
}

var errDown = errors.New("down")

func newStage(t *testing.T, dcd *v1alpha1.DynamoComponentDeployment, have ...snapshot.API) *stage {
	t.Helper()
	s := &stage{T: t}
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithReturnManagedFields().
		WithStatusSubresource(&v1alpha1.DynamoComponentDeployment{}).WithObjects(dcd)
	builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			switch kind := object.GetObjectKind().GroupVersionKind().Kind; {
			case kind != "" && kind == s.unread:
				return errDown
			case kind != "CustomResourceDefinition":
				return c.Get(ctx, key, object, options...)
			case slices.Contains(have, snapshot.API(key.Name)):
				return nil
			default:
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if kinded, ok := object.(interface{ GetKind() string }); ok && s.refuse != "" && kinded.GetKind() == s.refuse {
				return errDown
			}
			return c.Apply(ctx, object, options...)
		},
	})
	children := Children()
	for _, c := range children {
		if err := observe.Index(t.Context(), indexes{builder}, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(observe.IndexPods(t.Context(), indexes{builder}), observe.IndexAccounts(t.Context(), indexes{builder})); err != nil {
		t.Fatal(err)
	}
	s.client = builder.Build()
	applier, err := apply.New(s.client, s.client)
	if err != nil {
		t.Fatal(err)
	}
	applier.OnWrite = func(c apply.Change) { s.writes = append(s.writes, c.String()) }
	clock, recorder := testclock.NewFakePassiveClock(time.Unix(1000, 0)), events.NewFakeRecorder(1000)
	s.reconciler = &Reconciler{
		Client: s.client, Observer: observe.New(s.client, children...), Applier: applier, Events: recorder, Clock: clock,
		Facts: observe.Facts{Cached: s.client, Direct: s.client}, Pods: observe.NewInspector(s.client, s.client, nil),
		Cleanup:  controller.Cleanup{Applier: applier, Events: recorder, Clock: clock, Began: &controller.FirstSeen{}},
		Platform: config.Default().Platform(),
	}
	return s
}

// pass makes one reconcile and checks what it wrote, what the component says then,
// and how the reconcile ended.
func (s *stage) pass(reason string, failed bool, want ...string) {
	s.Helper()
	dcd, key := &v1alpha1.DynamoComponentDeployment{}, client.ObjectKey{Namespace: "lab", Name: "decode"}
	if err := s.client.Get(s.Context(), key, dcd); err != nil {
		s.Fatal(err)
	}
	s.writes = nil
	_, err := s.reconciler.Reconcile(s.Context(), dcd)
	if (err != nil && !errors.Is(err, reconcile.TerminalError(nil))) != failed {
		s.Errorf("reconcile ended with %v", err)
	}
	if diff := cmp.Diff(want, s.writes); diff != "" {
		s.Errorf("writes (-want +got):\n%s", diff)
	}
	if err := s.client.Get(s.Context(), key, dcd); err != nil {
		s.Fatal(err)
	}
	if c := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable); c == nil || c.Reason != reason {
		s.Errorf("condition %v, want %s", c, reason)
	}
}

func decode(change func(*v1alpha1.DynamoComponentDeployment)) *v1alpha1.DynamoComponentDeployment {
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "decode", UID: "decode-uid", Generation: 1}}
	dcd.Spec.BackendFramework = "vllm"
	dcd.Spec.ComponentType, dcd.Spec.Replicas = v1alpha1.ComponentTypeWorker, new(int32(1))
	dcd.Spec.ExtraPodSpec = &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "engine:1", Args: []string{"python3 -m dynamo.vllm"}}}
	dcd.Spec.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	change(dcd)
	return dcd
}

func TestAComponentIsMadeOnceAndLeftAlone(t *testing.T) {
	s := newStage(t, decode(func(*v1alpha1.DynamoComponentDeployment) {}))
	s.reconciler.Platform.Defaults.Discovery = "etcd"
	s.pass(v1alpha1.ReasonDeploymentNotReady, false, "Updated DynamoComponentDeployment decode", "Created Deployment decode", "Created Service decode")
	s.pass(v1alpha1.ReasonDeploymentNotReady, false)
}

// TestWhatAnEarlierOperatorLeftWaitsForItsGraph: until that has told it its contract,
// pods would be made by another.
func TestWhatAnEarlierOperatorLeftWaitsForItsGraph(t *testing.T) {
	owned := func(version string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: v1alpha1.KindDynamoGraphDeployment, Name: "g", UID: "g-uid", Controller: new(true)}}
	}
	s := newStage(t, decode(func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.OwnerReferences = owned("nvidia.com/v1beta1") }))
	dcd := &v1alpha1.DynamoComponentDeployment{}
	look := func() {
		t.Helper()
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "decode"}, dcd); err != nil {
			t.Fatal(err)
		}
		if _, err := s.reconciler.Reconcile(t.Context(), dcd); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if len(s.writes) > 0 || len(dcd.Status.Conditions) > 0 {
		t.Errorf("writes %v, conditions %v", s.writes, dcd.Status.Conditions)
	}
	dcd.OwnerReferences = owned("nvidia.com/v1alpha1")
	if err := s.client.Update(t.Context(), dcd); err != nil {
		t.Fatal(err)
	}
	look()
	if !slices.Contains(s.writes, "Created Deployment decode") {
		t.Errorf("writes %v", s.writes)
	}
}

func TestAFailedWriteKeepsNothingElseFromBeingMade(t *testing.T) {
	s := newStage(t, decode(func(*v1alpha1.DynamoComponentDeployment) {}))
	s.reconciler.Platform.Defaults.Discovery = "etcd"
	s.refuse = "Deployment"
	s.pass(v1alpha1.ReasonReconcileFailed, true, "Updated DynamoComponentDeployment decode", "Created Service decode")
	s.refuse = ""
	s.pass(v1alpha1.ReasonDeploymentNotReady, false, "Created Deployment decode")
}

func TestWhatTheRulesRefuseIsNotMade(t *testing.T) {
	s := newStage(t, decode(func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Spec.Replicas = new(int32(-1)) }))
	s.pass(v1alpha1.ReasonValidationFailed, false)
}

// TestNothingIsMadeFromAFactThatCouldNotBeRead: pods that find no key in time would
// crash.
func TestNothingIsMadeFromAFactThatCouldNotBeRead(t *testing.T) {
	s := newStage(t, decode(func(dcd *v1alpha1.DynamoComponentDeployment) {
		dcd.Spec.ExtraPodSpec.MainContainer.Args = []string{"python3 -m dynamo.trtllm"}
		dcd.Spec.BackendFramework, dcd.Spec.Multinode = "trtllm", &v1alpha1.Multinode{NodeCount: 2}
	}), snapshot.APILeaderWorkerSet, snapshot.APIVolcano)
	s.unread = "Secret"
	s.pass(v1alpha1.ReasonReconcileFailed, true)
	s.unread = ""
	dcd := &v1alpha1.DynamoComponentDeployment{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "decode"}, dcd); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconciler.Reconcile(t.Context(), dcd); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Created LeaderWorkerSet", "Created Secret " + s.reconciler.Platform.Pod.SSHSecret} {
		if !slices.ContainsFunc(s.writes, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("wrote %v, without %s", s.writes, want)
		}
	}
}

// TestWhatCannotBeRenderedGoesOnRunning: an API that went away takes nothing with it.
func TestWhatCannotBeRenderedGoesOnRunning(t *testing.T) {
	dcd := decode(func(*v1alpha1.DynamoComponentDeployment) {})
	s := newStage(t, dcd)
	s.reconciler.Platform.Defaults.Discovery = "etcd"
	s.pass(v1alpha1.ReasonDeploymentNotReady, false, "Updated DynamoComponentDeployment decode", "Created Deployment decode", "Created Service decode")
	live := &v1alpha1.DynamoComponentDeployment{}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); err != nil {
		t.Fatal(err)
	}
	live.Spec.Multinode = &v1alpha1.Multinode{NodeCount: 2}
	if err := s.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	s.pass(v1alpha1.ReasonOrchestratorUnavailable, false, "Updated Service decode")
}

// left is a component that the original's 1.x carried out, and what runs it.
func left(change func(*v1alpha1.DynamoComponentDeployment)) (*v1alpha1.DynamoComponentDeployment, *appsv1.Deployment) {
	dcd := decode(func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Status.ObservedGeneration = 1 })
	if change != nil {
		change(dcd)
	}
	runs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "decode",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(dcd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))},
	}}
	runs.Spec.Template.Labels = map[string]string{v1alpha1.LabelDiscoveryBackend: "kubernetes"}
	return dcd, runs
}

// TestAFailureDoesNotHideThatAComponentWasCarriedOut: the status that tells of a failure
// replaces the one by which a component that is taken over is known.
func TestAFailureDoesNotHideThatAComponentWasCarriedOut(t *testing.T) {
	type dcd = v1alpha1.DynamoComponentDeployment
	noted := map[string]string{v1alpha1.AnnotationAdoptedGeneration: "1"}
	unread := func(o *observation) { o.unread = errDown }
	for rule, c := range map[string]struct {
		change func(*dcd)
		fail   func(*observation)
		want   *apply.Plan
	}{
		"of one that cannot be read": {fail: func(o *observation) { o.graph, o.invalid = nil, errDown }, want: &apply.Plan{Annotations: noted}},
		"of one that misses a fact":  {fail: unread, want: &apply.Plan{Annotations: noted}},
		"of one with uncounted GPUs": {fail: func(o *observation) { o.uncounted = errDown }, want: &apply.Plan{Annotations: noted}},
		"and its finalizer stays":    {change: func(d *dcd) { d.Finalizers = []string{v1alpha1.Finalizer} }, fail: unread, want: &apply.Plan{Annotations: noted, Finalizer: true}},
		"and it is written once":     {change: func(d *dcd) { d.Annotations = noted }, fail: unread},
		"not of one that changed":    {change: func(d *dcd) { d.Generation = 2 }, fail: unread},
		"nor of one that is a graph's": {change: func(d *dcd) {
			d.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: "g"}}
		}, fail: unread},
	} {
		t.Run(rule, func(t *testing.T) {
			dcd, runs := left(c.change)
			seen := observation{platform: config.Default().Platform()}
			seen.Owned = []graph.Object{runs}
			seen.platform.Defaults.Running = graph.ReadRunning(dcd, seen.Owned)
			seen.graph, seen.invalid = intent(dcd, seen.platform.Defaults)
			c.fail(&seen)
			d := (&Reconciler{}).decide(dcd, seen)
			if !errors.Is(d.problem, errDown) {
				t.Errorf("the problem is %v", d.problem)
			}
			if diff := cmp.Diff(c.want, d.plan); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOfAnInvalidComponentATakeoverIsAllThatIsWritten, and its condition says what is wrong.
func TestOfAnInvalidComponentATakeoverIsAllThatIsWritten(t *testing.T) {
	dcd, runs := left(func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Spec.Replicas = new(int32(-1)) })
	s := newStage(t, dcd)
	if err := s.client.Create(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	s.pass(v1alpha1.ReasonValidationFailed, false, "Updated DynamoComponentDeployment decode")
	s.pass(v1alpha1.ReasonValidationFailed, false)
}

// TestAWriteThatFailsDoesNotHideThatAComponentWasCarriedOut: webhooks that are not up yet
// refuse the first write to a component that is taken over, and a status of ours would be
// taken for one of a change that is still to be made.
func TestAWriteThatFailsDoesNotHideThatAComponentWasCarriedOut(t *testing.T) {
	dcd, runs := left(nil)
	s := newStage(t, dcd)
	if err := s.client.Create(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	failing, err := apply.New(interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errDown
		},
	}), s.client)
	if err != nil {
		t.Fatal(err)
	}
	applier := s.reconciler.Applier
	s.reconciler.Applier = failing
	look := func() error {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(runs), dcd); err != nil {
			t.Fatal(err)
		}
		_, err := s.reconciler.Reconcile(t.Context(), dcd)
		return err
	}
	if err := look(); !errors.Is(err, errDown) {
		t.Errorf("reconcile says %v", err)
	}
	s.reconciler.Applier = applier
	if err := look(); err != nil {
		t.Error(err)
	}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(runs), dcd); err != nil {
		t.Fatal(err)
	}
	if dcd.Annotations[v1alpha1.AnnotationAdoptedGeneration] != "1" {
		t.Errorf("annotations %v", dcd.Annotations)
	}
}
