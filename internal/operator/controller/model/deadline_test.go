package model

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/lora"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

// TestAClockThatIsAheadSkipsNoUnload: the deletion's time is of the API server's
// clock, the deadline is measured by ours.
func TestAClockThatIsAheadSkipsNoUnload(t *testing.T) {
	const deadline = 30 * time.Second
	for rule, ahead := range map[string]time.Duration{
		"clocks agree":     0,
		"ours is ahead":    2 * deadline,
		"theirs are ahead": -2 * deadline,
	} {
		t.Run(rule, func(t *testing.T) {
			asked := make(chan struct{}, 100)
			engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked <- struct{}{}
				http.Error(w, "busy", http.StatusServiceUnavailable) // so that only the deadline ends it
			}))
			t.Cleanup(engine.Close)
			proxy, err := url.Parse(engine.URL)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Unix(10000, 0)
			clock := testclock.NewFakePassiveClock(now)
			cluster := worldOf(t, func(dm *v1alpha1.DynamoModel) {
				dm.DeletionTimestamp = &metav1.Time{Time: now.Add(-ahead)}
				dm.Finalizers = []string{v1alpha1.Finalizer}
				dm.Annotations = map[string]string{v1alpha1.AnnotationLoadedAdapters: loraplan.EncodeNote([]loraplan.Adapter{{Name: "a", URI: "s3://b/a"}})}
			})
			applier, err := apply.New(cluster, cluster)
			if err != nil {
				t.Fatal(err)
			}
			woken := make(chan struct{}, 100)
			r := &Reconciler{
				Client: cluster, Models: observe.Models{Reader: cluster}, Applier: applier,
				Caller:  lora.NewCaller(t.Context(), lora.NewClient(proxy), lora.Limits{Quick: 1, Slow: 1, SlowAfter: time.Minute, Timeout: time.Minute}),
				Backoff: loraplan.Backoff{}, UnloadDeadline: deadline, Events: events.NewFakeRecorder(10), Clock: clock,
				Wake: func(types.NamespacedName, time.Duration) { woken <- struct{}{} },
			}
			if !pass(t, r, cluster) {
				t.Fatal("released at once")
			}
			<-asked
			<-woken
			clock.SetTime(now.Add(deadline - time.Second))
			if !pass(t, r, cluster) {
				t.Error("released before the deadline")
			}
			clock.SetTime(now.Add(deadline + time.Second))
			if pass(t, r, cluster) {
				t.Error("held after the deadline")
			}
		})
	}
}

// pass reconciles the model and reports whether it is still held.
func pass(t *testing.T, r *Reconciler, cluster client.Client) bool {
	t.Helper()
	dm := &v1alpha1.DynamoModel{}
	key := types.NamespacedName{Namespace: "n", Name: "m"}
	if err := cluster.Get(t.Context(), key, dm); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), dm); err != nil {
		t.Fatal(err)
	}
	err := cluster.Get(t.Context(), key, dm)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil && slices.Contains(dm.Finalizers, v1alpha1.Finalizer)
}

// indexes hands an index to a fake client.
type indexes struct{ *fake.ClientBuilder }

// IndexField takes an index.
func (i indexes) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i.WithIndex(object, field, of)
	return nil
}

// worldOf is a cluster with one engine and one model with an adapter for it.
func worldOf(t *testing.T, change func(*v1alpha1.DynamoModel)) client.Client {
	t.Helper()
	const base = "org/base"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "p"},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", Labels: map[string]string{
			v1alpha1.LabelBaseModelHash: graph.ModelHash(base), discoveryv1.LabelServiceName: graph.ModelService(base),
		}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "p"}}},
	}
	dm := &v1alpha1.DynamoModel{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "m"},
		Spec:       v1alpha1.DynamoModelSpec{ModelName: "a", BaseModelName: base, ModelType: v1alpha1.ModelTypeLoRA, Source: &v1alpha1.ModelSource{URI: "s3://b/a"}},
	}
	change(dm)
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(dm).WithObjects(pod, slice, dm)
	if err := observe.IndexModels(t.Context(), indexes{builder}); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}
