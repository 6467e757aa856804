package resilience

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

func TestRolloutUnderTraffic(t *testing.T) {
	w := newWorld(t, "rollout", 10*time.Minute)
	w.apply(disaggregated)
	w.answers()

	lowest := w.capacity()
	clients, began := w.traffic(10), time.Now()
	const rollouts = 2
	for n := range rollouts {
		image := fmt.Sprintf("vllm-runtime:%d", n+2)
		set := fmt.Sprintf(`{"extraPodSpec":{"mainContainer":{"image":%q}}}`, image)
		w.patch(fmt.Sprintf(`{"Frontend":%[1]s,"decode":%[1]s,"prefill":%[1]s}`, set))
		w.eventually("the new image everywhere", func(ctx context.Context) error {
			if err := w.isReady(ctx); err != nil {
				return err
			}
			for _, pod := range w.pods(ctx) { // the old ones have answered to the end
				if got := pod.Spec.Containers[0].Image; got != image {
					return fmt.Errorf("%s runs %s", pod.Name, got)
				}
			}
			return nil
		})
	}
	took := time.Since(began)
	asked := clients.end()
	failed := failures(asked, began)
	for _, failure := range failed {
		t.Error(failure)
	}
	low := lowest()
	for _, service := range slices.Sorted(maps.Keys(low)) {
		if c := low[service]; c.ready < c.promised {
			t.Errorf("%s had %d ready replicas, promised are %d", service, c.ready, c.promised)
		}
	}
	if len(low) != 3 {
		t.Errorf("seen were only %v", low)
	}
	summary.Line(t, "%d rollouts of 3 services under traffic: %d of %d streams failed in %.0f s; least ready replicas %s",
		rollouts, len(failed), len(asked), took.Seconds(), low)
}

// capacity is how many replicas were ready at least, and how many had to be.
type capacity struct{ ready, promised int }

type capacities map[string]capacity

func (all capacities) String() string {
	var list []string
	for _, service := range slices.Sorted(maps.Keys(all)) {
		list = append(list, fmt.Sprintf("%s %d (promised %d)", service, all[service].ready, all[service].promised))
	}
	return strings.Join(list, ", ")
}

// capacity follows the Deployments until the lowest point of each is asked for.
func (w world) capacity() func() capacities {
	w.Helper()
	watcher, err := w.cluster.Client.Watch(w.ctx, &appsv1.DeploymentList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	lowest := capacities{}
	var done sync.WaitGroup
	var stopped atomic.Bool
	done.Go(func() {
		for event := range watcher.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				// One that is stopped while it reads may tell that, too.
				if !stopped.Load() {
					w.Errorf("the watch of Deployments says %v", event.Object)
				}
				return
			}
			replicas := int(*d.Spec.Replicas)
			missing, err := intstr.GetScaledValueFromIntOrPercent(d.Spec.Strategy.RollingUpdate.MaxUnavailable, replicas, false)
			if err != nil {
				w.Error(err)
				return
			}
			now := capacity{int(d.Status.ReadyReplicas), replicas - missing}
			if known, seen := lowest[d.Name]; !seen || now.ready-now.promised < known.ready-known.promised {
				lowest[d.Name] = now
			}
		}
	})
	return func() capacities {
		stopped.Store(true)
		watcher.Stop()
		done.Wait()
		return lowest
	}
}

func TestARolloutThatCannotProgress(t *testing.T) {
	if !*asked {
		t.Skip("takes minutes and measures: make resilience runs it")
	}
	// Both replicas need all GPUs of one node, so that a surge has no room.
	full := strings.Replace(disaggregated, `replicas: 2
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer:`, `replicas: 2
      resources: {limits: {gpu: "8"}}
      extraPodSpec: {nodeSelector: {kubernetes.io/hostname: node-5}, tolerations: [{key: resilience, operator: Exists}], mainContainer:`, 1)
	reserve(t, "node-5")
	for namespace, c := range map[string]struct {
		graph, change string
		reason        diagnosis.Reason
	}{
		"bad-image":    {disaggregated, `{"extraPodMetadata":{"annotations":{"localcluster.dynamo/image-pull-error":"true"}},"extraPodSpec":{"mainContainer":{"image":"vllm-runtime:none"}}}`, diagnosis.ImageNotFound},
		"no-spare-gpu": {full, `{"extraPodSpec":{"mainContainer":{"image":"vllm-runtime:2"}}}`, diagnosis.Unschedulable},
		"crash":        {disaggregated, `{"extraPodSpec":{"mainContainer":{"command":["/bin/sh","-c"],"args":["echo no such model >&2; exit 3"]}}}`, diagnosis.ContainerCrashed},
	} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, namespace, 8*time.Minute)
			w.apply(c.graph)
			w.answers()
			old := w.old(w.pods(w.ctx))

			clients, began := w.traffic(2), time.Now()
			w.patch(fmt.Sprintf(`{"decode":%s}`, c.change))
			var said *metav1.Condition
			w.eventually("the reason to be told", func(ctx context.Context) (err error) {
				if said, err = w.condition(ctx); err == nil && (said.Status != metav1.ConditionFalse || said.Reason != string(c.reason)) {
					err = fmt.Errorf("%s: %s", said.Reason, said.Message)
				}
				return err
			})
			told := time.Since(began)
			// Old pods that were to go would go now.
			select {
			case <-time.After(20 * time.Second):
			case <-w.ctx.Done():
			}
			if err := old(w.pods(w.ctx)); err != nil {
				t.Error(err)
			}
			if again, err := w.condition(w.ctx); err != nil || again.Reason != said.Reason {
				t.Errorf("later it says %+v, %v", again, err)
			}
			w.apply(c.graph) // the way back
			w.patch(`{"decode":{"extraPodMetadata":null}}`)
			w.eventually("the graph to be ready again", w.isReady)
			asked := clients.end()
			failed := failures(asked, began)
			for _, failure := range failed {
				t.Error(failure)
			}
			if err := old(w.pods(w.ctx)); err != nil {
				t.Error("after the way back:", err)
			}
			summary.Line(t, "a rollout that cannot progress (%s): %s told after %.1f s (%s); %d of %d streams failed",
				namespace, said.Reason, told.Seconds(), said.Message, len(failed), len(asked))
		})
	}
}

// What is ready and dies a moment later must not have taken an old engine's place.
func TestAnEngineThatDiesOnceItIsReady(t *testing.T) {
	w := newWorld(t, "crash-later", 8*time.Minute)
	w.apply(strings.Replace(disaggregated, "subComponentType: decode\n",
		"subComponentType: decode\n      annotations: {"+v1alpha1.AnnotationMinReadySeconds+`: "30"}`+"\n", 1))
	w.answers()
	before := w.pods(w.ctx)
	old := w.old(before)

	w.patch(`{"decode":{"envs":[{"name":"MOCKER_CRASH_AFTER","value":"10s"}]}}`)
	newcomer := func(ctx context.Context, is func(corev1.Pod) bool) error {
		for _, pod := range w.pods(ctx) {
			if !slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == pod.UID }) && is(pod) {
				return nil
			}
		}
		return errors.New("it is not")
	}
	w.eventually("the new engine to be ready", func(ctx context.Context) error { return newcomer(ctx, isReady) })
	w.eventually("the new engine to die twice", func(ctx context.Context) error {
		return newcomer(ctx, func(pod corev1.Pod) bool {
			return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount >= 2
		})
	})
	err := old(w.pods(w.ctx))
	if err != nil {
		t.Error(err)
	}
	summary.Line(t, "an engine that was ready and died twice: old pods replaced by it: %v", err != nil)
}

// old remembers pods and tells later whether each of them is still there, ready
// and never restarted.
func (w world) old(pods []corev1.Pod) func([]corev1.Pod) error {
	before := map[types.UID]corev1.Pod{}
	for _, pod := range pods {
		before[pod.UID] = pod
	}
	return func(pods []corev1.Pod) error {
		var errs []error
		found := 0
		for _, pod := range pods {
			was, known := before[pod.UID]
			if !known {
				continue
			}
			found++
			if !isReady(pod) || pod.Status.ContainerStatuses[0].RestartCount != was.Status.ContainerStatuses[0].RestartCount {
				errs = append(errs, fmt.Errorf("old pod %s is no longer ready", pod.Name))
			}
		}
		if found != len(before) {
			errs = append(errs, fmt.Errorf("%d of %d old pods are left", found, len(before)))
		}
		return errors.Join(errs...)
	}
}

// reserve keeps a node for pods that tolerate it, until the test ends.
func reserve(t *testing.T, name string) {
	t.Helper()
	c, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	taint := func(ctx context.Context, taints string) {
		t.Helper()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"taints":%s}}`, taints))
		if err := c.Client.Patch(ctx, node, patch); err != nil {
			t.Errorf("reserve %s: %v", name, err)
		}
	}
	taint(t.Context(), `[{"key":"resilience","effect":"NoSchedule"}]`)
	t.Cleanup(func() { taint(context.Background(), "null") })
}
