package componentdeployment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// indexes hands the reconciler's indexes to a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i.WithIndex(object, field, of)
	return nil
}

// server is an API server without optional APIs, and with a fault.
type server struct {
	*testing.T
	client     client.Client
	reconciler *Reconciler
	writes     []string
	// refuse gives the error of a request, by verb and kind.
	refuse func(verb, kind string) error
}

var key = client.ObjectKey{Namespace: "lab", Name: "decode"}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{T: t, refuse: func(string, string) error { return nil }}
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u", Generation: 1}}
	dcd.Spec.BackendFramework = v1alpha1.BackendFrameworkVLLM
	dcd.Spec.SharedSpec = v1alpha1.SharedSpec{
		ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(1)),
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "engine:1"}},
	}
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithReturnManagedFields().WithStatusSubresource(dcd).WithObjects(dcd)
	for _, child := range Children() {
		if err := observe.Index(t.Context(), indexes{builder}, child); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(observe.IndexPods(t.Context(), indexes{builder}), observe.IndexAccounts(t.Context(), indexes{builder})); err != nil {
		t.Fatal(err)
	}
	builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if object.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := s.refuse("list", strings.TrimSuffix(kindOf(list), "List")); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			kind := object.(interface{ GetKind() string }).GetKind()
			if err := s.refuse("apply", kind); err != nil {
				return err
			}
			return c.Apply(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := s.refuse(sub, kindOf(object)); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
	s.client = builder.Build()
	applier, err := apply.New(s.client, s.client)
	if err != nil {
		t.Fatal(err)
	}
	applier.OnWrite = func(c apply.Change) { s.writes = append(s.writes, string(c.Action)+" "+c.Kind.Kind) }
	clock, recorder := testclock.NewFakePassiveClock(time.Unix(1000, 0)), events.NewFakeRecorder(100)
	s.reconciler = &Reconciler{
		Client: s.client, Observer: observe.New(s.client, Children()...), Facts: observe.Facts{Cached: s.client, Direct: s.client},
		Pods: observe.NewInspector(s.client, s.client, nil), Applier: applier, Events: recorder, Clock: clock,
		Cleanup:  controller.Cleanup{Applier: applier, Events: recorder, Clock: clock, Began: &controller.FirstSeen{}},
		Platform: config.Default().Platform(),
	}
	return s
}

func kindOf(object runtime.Object) string {
	kinds, _, err := scheme.New().ObjectKinds(object)
	if err != nil {
		return ""
	}
	return kinds[0].Kind
}

// reconcile makes one reconcile, and returns what it wrote and what is said of it.
func (s *server) reconcile() (writes []string, ready *metav1.Condition, err error) {
	s.Helper()
	dcd := &v1alpha1.DynamoComponentDeployment{}
	if err := s.client.Get(s.Context(), key, dcd); err != nil {
		s.Fatal(err)
	}
	s.writes = nil
	_, failed := s.reconciler.Reconcile(s.Context(), dcd)
	if err := s.client.Get(s.Context(), key, dcd); err != nil {
		s.Fatal(err)
	}
	return s.writes, meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable), failed
}

var errTimeout = errors.New("timeout")

// TestAFaultStopsNothingBesideIt: what a reconcile writes and says when a request
// fails, and that the next one makes good for it.
func TestAFaultStopsNothingBesideIt(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "decode", nil)
	made := []string{"Created Deployment", "Created Service"}
	for rule, c := range map[string]struct {
		verb, kind string
		fault      error
		writes     []string
		reason     string
		retried    bool
		then       []string
	}{
		"no fault": {writes: made, reason: v1alpha1.ReasonDeploymentNotReady},
		"what cannot be seen is not written over": {
			verb: "list", kind: "Deployment", fault: errTimeout, retried: true, then: made,
		},
		"a child whose write fails is made by the next reconcile": {
			verb: "apply", kind: "Service", fault: errTimeout, writes: made[:1], reason: v1alpha1.ReasonReconcileFailed, retried: true, then: made[1:],
		},
		"a child that is refused waits for a person": {
			verb: "apply", kind: "Service", fault: invalid, writes: made[:1], reason: v1alpha1.ReasonRejected, then: made[1:],
		},
		"a status that cannot be written is written by the next reconcile": {
			verb: "status", kind: v1alpha1.KindDynamoComponentDeployment, fault: errTimeout, writes: made, retried: true,
		},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newServer(t)
			s.refuse = func(verb, kind string) error {
				if verb == c.verb && kind == c.kind {
					return c.fault
				}
				return nil
			}
			writes, ready, err := s.reconcile()
			workloads := func(all []string) []string {
				all = slices.DeleteFunc(all, func(w string) bool { return !strings.HasSuffix(w, "Deployment") && !strings.HasSuffix(w, " Service") })
				slices.Sort(all)
				return all
			}
			if diff := cmp.Diff(c.writes, workloads(writes)); diff != "" {
				t.Error("-want +got", diff)
			}
			if retried := err != nil && !errors.Is(err, reconcile.TerminalError(nil)); retried != c.retried {
				t.Errorf("error %v", err)
			}
			if got := reasonOf(ready); got != c.reason {
				t.Errorf("condition %v, want %s", ready, c.reason)
			}
			s.refuse = func(string, string) error { return nil }
			writes, ready, err = s.reconcile()
			if diff := cmp.Diff(c.then, workloads(writes)); diff != "" || err != nil {
				t.Errorf("the next reconcile: %v -want +got %s", err, diff)
			}
			if got := reasonOf(ready); got != v1alpha1.ReasonDeploymentNotReady {
				t.Errorf("the next reconcile says %v", ready)
			}
			if writes, _, err := s.reconcile(); len(writes) > 0 || err != nil {
				t.Errorf("a reconcile without a change wrote %v, %v", writes, err)
			}
		})
	}
}

func reasonOf(c *metav1.Condition) string {
	if c == nil {
		return ""
	}
	return c.Reason
}
