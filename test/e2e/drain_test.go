package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// fewestReady follows the pods of a service and keeps how few of them were ready at once,
// from the first state on in which all are.
func (w world) fewestReady(service string, all int) (fewest func() int) {
	w.Helper()
	events, err := w.cluster.Client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelComponent: service})
	if err != nil {
		w.Fatal(err)
	}
	result := make(chan int, 1)
	go func() {
		ready, lowest := map[types.UID]bool{}, -1
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			delete(ready, pod.UID)
			if event.Type != watch.Deleted && pod.DeletionTimestamp == nil && podReady(*pod) {
				ready[pod.UID] = true
			}
			if lowest < 0 && len(ready) == all || lowest > len(ready) {
				lowest = len(ready)
			}
		}
		result <- lowest
	}()
	return func() int { events.Stop(); return <-result }
}

// evict asks for the eviction of a pod, as a drain of its node does, and reports whether it
// may go. A pod that is gone may.
func (w world) evict(ctx context.Context, pod corev1.Pod) (bool, error) {
	err := w.cluster.Client.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsTooManyRequests(err):
		return false, nil
	default:
		return false, err
	}
}

// TestANodeDrainKeepsTheFloor: pods are evicted as often as the API server lets them be.
// One of three decode workers may be missing, so all are replaced and two are always
// ready; of prefill none may be, so it stays.
func TestANodeDrainKeepsTheFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const replicas, floor = 3, 2
	dgd := w.restful("g")
	dgd.Annotations = map[string]string{v1alpha1.AnnotationDisruptionBudget: "true"}
	decode := dgd.Spec.Services["decode"]
	decode.Replicas, decode.Annotations = new(int32(replicas)), map[string]string{v1alpha1.AnnotationMaxUnavailable: "1"}
	w.create(dgd)
	w.ready("g")
	w.comesBack(child{"policy", "v1", "PodDisruptionBudget", "g-decode"})
	w.eventually("the budget to be reckoned", func(ctx context.Context) error {
		b := &policyv1.PodDisruptionBudget{}
		if err := w.cluster.Client.Get(ctx, w.key("g-decode"), b); err != nil {
			return err
		}
		if b.Status.ObservedGeneration != b.Generation || b.Status.DesiredHealthy != floor || b.Status.CurrentHealthy != replicas {
			return fmt.Errorf("status %+v", b.Status)
		}
		return nil
	})

	fewest := w.fewestReady("decode", replicas)
	drained, refused := map[types.UID]bool{}, 0
	for _, pod := range w.pods(w.ctx) {
		if pod.Labels[v1alpha1.LabelComponent] == "decode" {
			drained[pod.UID] = false
		}
	}
	stays := w.podOf("g", "prefill")
	w.eventually("every decode worker to be replaced", func(ctx context.Context) error {
		for _, pod := range w.pods(ctx) {
			done, ours := drained[pod.UID]
			if !ours || done || pod.DeletionTimestamp != nil {
				continue
			}
			may, err := w.evict(ctx, pod)
			if err != nil {
				return err
			}
			if drained[pod.UID] = may; !may {
				refused++
			}
		}
		if may, err := w.evict(ctx, stays); err != nil || may {
			w.Errorf("the only prefill worker was evicted, %v", err)
		}
		if left := w.count("g", "decode"); left < replicas {
			return fmt.Errorf("%d pods", left)
		}
		for uid, done := range drained {
			if !done {
				return fmt.Errorf("%s is not evicted yet", uid)
			}
		}
		return nil
	})
	w.ready("g")
	lowest := fewest()
	if lowest != floor || refused == 0 {
		t.Errorf("%d of %d decode workers were ready at least, the floor is %d; %d evictions were refused", lowest, replicas, floor, refused)
	}

	// A graph that asks for less has a lower floor, and one that asks for nothing none.
	w.patchGraph("g", `{"spec":{"services":{"decode":{"replicas":2}}}}`)
	w.eventually("the floor to follow", func(ctx context.Context) error {
		b := &policyv1.PodDisruptionBudget{}
		if err := w.cluster.Client.Get(ctx, w.key("g-decode"), b); err != nil {
			return err
		}
		if n := b.Spec.MinAvailable.IntValue(); n != 1 {
			return fmt.Errorf("%d have to stay", n)
		}
		return nil
	})
	w.patchGraph("g", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.AnnotationDisruptionBudget))
	for _, name := range []string{"g-decode", "g-prefill", "g-frontend"} {
		w.gone(&policyv1.PodDisruptionBudget{}, name)
	}
	w.eventually("prefill to be evicted", func(ctx context.Context) error {
		may, err := w.evict(ctx, stays)
		if err == nil && !may {
			err = errors.New("it may not go")
		}
		return err
	})
	summary.Line(t, "drain: all of %d decode workers evicted, %d ready at least, %d evictions refused", replicas, lowest, refused)
}
