package scalingadapter

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// indexes hands the reconciler's indexes to a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i.WithIndex(object, field, of)
	return nil
}

func TestAPodThatBeginsOrCeasesToEndWakesItsAdapters(t *testing.T) {
	was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	ends := was.DeepCopy()
	ends.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for _, x := range []struct {
		rule string
		got  bool
		want bool
	}{
		{"one that comes", ending.Create(event.CreateEvent{Object: was}), false},
		{"one that changes otherwise", ending.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: was}), false},
		{"one that begins to end", ending.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: ends}), true},
		{"one that goes on ending", ending.Update(event.UpdateEvent{ObjectOld: ends, ObjectNew: ends}), false},
		{"one that is gone", ending.Delete(event.DeleteEvent{Object: ends}), true},
	} {
		if x.got != x.want {
			t.Errorf("%s: %t", x.rule, x.got)
		}
	}
}

// TestAnAdapterSaysWhatIsTrueOrWhatWasLast: a graph that cannot be read is not one
// that does not exist.
func TestAnAdapterSaysWhatIsTrueOrWhatWasLast(t *testing.T) {
	adapter := &v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat-decode", Generation: 1}}
	adapter.Spec.DGDRef.Name, adapter.Spec.DGDRef.ServiceName, adapter.Spec.Replicas = "chat", "decode", 3
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat", UID: "chat-uid"}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"decode": {ScalingAdapter: &v1alpha1.ScalingAdapter{Enabled: true}}}
	dgd.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"decode": {Replicas: 2}}
	adapter.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))}

	down, writes := false, 0
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(adapter).WithObjects(adapter)
	if err := observe.IndexPods(t.Context(), indexes{builder}); err != nil {
		t.Fatal(err)
	}
	cluster := builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, graph := object.(*v1alpha1.DynamoGraphDeployment); graph && down {
				return errors.New("down")
			}
			return c.Get(ctx, key, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(resource).Patch(ctx, object, patch, options...)
		},
	}).Build()
	r := &Reconciler{Client: cluster, Facts: observe.Facts{Cached: cluster}, Clock: testclock.NewFakePassiveClock(time.Unix(1000, 0))}
	var draining *int32
	var limitedBy string
	pass := func(rule, reason string, replicas int32, wrote bool) {
		t.Helper()
		live := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(adapter), live); err != nil {
			t.Fatal(err)
		}
		writes = 0
		if _, err := r.Reconcile(t.Context(), live); (err != nil) != down {
			t.Errorf("%s: reconcile ended with %v", rule, err)
		}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(adapter), live); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionActive); c == nil || c.Reason != reason || live.Status.Replicas != replicas {
			t.Errorf("%s: %d replicas, condition %v", rule, live.Status.Replicas, c)
		}
		if (writes > 0) != wrote {
			t.Errorf("%s: %d writes", rule, writes)
		}
		draining, limitedBy = live.Status.DrainingReplicas, live.Status.LimitedBy
	}
	pass("there is no graph", v1alpha1.ReasonGraphNotFound, 0, true)
	if err := cluster.Create(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	pass("there is one now", v1alpha1.ReasonScalingActive, 2, true)
	pass("nothing changed", v1alpha1.ReasonScalingActive, 2, false)
	told := dgd.DeepCopy()
	told.Status.Services["decode"] = v1alpha1.ServiceReplicaStatus{
		Replicas: 2, ReadyReplicas: new(int32(1)), GrantedReplicas: new(int32(2)), LimitedBy: "graph chat", Startup: &v1alpha1.StartupTimes{P50Seconds: 80, P95Seconds: 95, Samples: 4},
	}
	told.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBudgetExhausted, Message: "decode has 2 of 3 replicas"}}
	if err := cluster.Patch(t.Context(), told, client.MergeFrom(dgd)); err != nil {
		t.Fatal(err)
	}
	pass("the graph tells what serves and what limits it", v1alpha1.ReasonScalingActive, 2, true)
	if limitedBy != "graph chat" {
		t.Errorf("it is limited by %q", limitedBy)
	}
	pass("it still tells that", v1alpha1.ReasonScalingActive, 2, false)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "chat-decode-1", Finalizers: []string{"test/drains"}, Labels: map[string]string{v1alpha1.LabelGraphName: "chat", v1alpha1.LabelComponent: "decode"},
	}}
	if err := errors.Join(cluster.Create(t.Context(), pod), cluster.Delete(t.Context(), pod)); err != nil {
		t.Fatal(err)
	}
	pass("a pod ends", v1alpha1.ReasonScalingActive, 2, true)
	if draining == nil || *draining != 1 {
		t.Errorf("a pod ends, and %v drain", draining)
	}
	pass("it still does", v1alpha1.ReasonScalingActive, 2, false)
	pod.Finalizers = nil
	if err := cluster.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	pass("it is gone", v1alpha1.ReasonScalingActive, 2, true)
	if draining == nil || *draining != 0 {
		t.Errorf("the pod is gone, and %v drain", draining)
	}
	down = true
	pass("the graph cannot be read", v1alpha1.ReasonScalingActive, 2, false)
	down = false
	if err := cluster.Delete(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	pass("the graph is gone", v1alpha1.ReasonGraphNotFound, 0, true)
}
