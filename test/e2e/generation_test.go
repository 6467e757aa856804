package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// generational has workers rolled out by generations, and remembers one revision of a
// graph beside those that run.
const generational = "rollout: {generations: true, historyLimit: 1}"

// pairs is how many replicas the workers of a graph have in these tests. With what they
// tolerate by default, none of them may be missing.
const pairs = 2

// rollsOutByGenerations changes the image of prefill and decode while users ask, and
// changes it again and back half-way, and restarts the graph. It returns the generation
// that is left.
func (w world) rollsOutByGenerations(on string) string {
	w.Helper()
	text, err := os.ReadFile(quickstart)
	if err != nil {
		w.Fatal(err)
	}
	w.applyText(strings.NewReplacer(":0.8.0", ":1.4.0", "replicas: 1", fmt.Sprint("replicas: ", pairs)).Replace(string(text)))
	url := w.frontendURL(w.ready("quickstart"))
	w.answers(url)
	first := w.remembered(revision.Completed)

	stop, users := w.users(url, 4)
	seen, watched := w.followPairs(pairs, "prefill", "decode")
	w.setImage("1.5.0")
	stable := w.rolledOut(generation.PhaseCompleted, "").Status.Rollout.Target
	if stable == first {
		w.Errorf("the image changed, and generation %s went on", first)
	}
	w.runsOnly(stable, ":1.5.0")
	// The limit leaves one: the first has gone.
	if second := w.remembered(revision.Completed); second != stable {
		w.Errorf("generation %s runs, and %s is remembered", stable, second)
	}

	w.patchGraph("quickstart", fmt.Sprintf(`{"metadata":{"annotations":{%q:"1 hold"}}}`, v1alpha1.AnnotationRolloutSteps))
	w.setImage("1.6.0")
	held := w.rolledOut(generation.PhaseHeld, "").Status.Rollout
	if held.Reason != string(policy.WaitsForPromotion) || held.Step != "1/1" || held.Stable != stable {
		w.Errorf("at the step it says %s (%s) of generation %s: %s", held.Reason, held.Step, held.Stable, held.Message)
	}
	if said, code := w.rolloutSays("status"); code != 3 || !strings.Contains(said, "kubectl dynamo rollout promote quickstart") {
		w.Errorf("rollout status ends with %d:\n%s", code, said)
	}
	kept := w.workersOf(stable)
	w.setImage("1.5.0")
	w.rolledOut(generation.PhaseCompleted, stable)
	w.runsOnly(stable, ":1.5.0")
	for uid, pod := range kept {
		if _, there := w.workersOf(stable)[uid]; !there {
			w.Errorf("%s ran half-way, and was replaced on the way back", pod.Name)
		}
	}
	if last := w.remembered(revision.Completed); last != stable {
		w.Errorf("generation %s runs, and %s is remembered", stable, last)
	}

	// A restart is a generation that is told the same. Steps are for other versions.
	w.patchGraph("quickstart", `{"spec":{"restart":{"id":"1"}}}`)
	w.eventually("the restart to be completed", func(context.Context) error {
		if r := w.graph("quickstart").Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseCompleted || r.ObservedID != "1" {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
	restarted := w.rolledOut(generation.PhaseCompleted, "").Status.Rollout.Target
	if restarted == stable {
		w.Errorf("generation %s went on through a restart", stable)
	}
	w.runsOnly(restarted, ":1.5.0")
	for _, pod := range w.pods(w.ctx) {
		if got := pod.Annotations[v1alpha1.AnnotationRestartAt]; pod.DeletionTimestamp == nil && got != "1" {
			w.Errorf("%s carries restart %q", pod.Name, got)
		}
	}
	if last := w.remembered(revision.Completed); last != restarted {
		w.Errorf("generation %s runs, and %s is remembered", restarted, last)
	}

	watched()
	stop()
	outcomes := <-users
	for _, o := range openloop.Failed(outcomes) {
		w.Errorf("planned at %v, failed at %v: %v", o.Planned, o.Ended, o.Err)
	}
	if seen.states == 0 || seen.lowest < pairs {
		w.Errorf("in %d states of the pods, %d pairs were ready in complete generations at least; %d have to be: %s", seen.states, seen.lowest, pairs, seen.at)
	}
	if said, code := w.rolloutSays("status"); code != 0 || !strings.Contains(said, string(generation.PhaseCompleted)) {
		w.Errorf("rollout status ends with %d:\n%s", code, said)
	}
	if said, code := w.rolloutSays("history"); code != 0 || len(strings.Split(strings.TrimSpace(said), "\n")) != 2 || !strings.Contains(said, restarted) {
		w.Errorf("rollout history ends with %d:\n%s", code, said)
	}
	summary.Line(w.T, "generations of workers on %s, an image change, another taken back half-way, and a restart: %d of %d requests failed, at least %d of %d pairs ready in %d states of the pods",
		on, len(openloop.Failed(outcomes)), len(outcomes), seen.lowest, pairs, seen.states)
	return restarted
}

func (w world) setImage(tag string) {
	w.Helper()
	image := fmt.Sprintf(`{"extraPodSpec":{"mainContainer":{"image":"nvcr.io/nvidia/ai-dynamo/vllm-runtime:%s"}}}`, tag)
	w.patchGraph("quickstart", fmt.Sprintf(`{"spec":{"services":{"prefill":%[1]s,"decode":%[1]s}}}`, image))
}

// rolledOut waits until the rollout of the last change is in a phase, and towards a
// generation if one is given.
func (w world) rolledOut(phase generation.Phase, target string) *v1alpha1.DynamoGraphDeployment {
	w.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	w.eventually("the rollout to be "+string(phase), func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("quickstart"), dgd); err != nil {
			return err
		}
		st := dgd.Status.Rollout
		if st == nil || dgd.Status.ObservedGeneration != dgd.Generation || st.Phase != string(phase) || target != "" && st.Target != target {
			return fmt.Errorf("rollout %+v", st)
		}
		return nil
	})
	for name, role := range dgd.Status.Rollout.Roles {
		if role.Lowest < pairs {
			w.Errorf("the status says that %s had %d of %d replicas", name, role.Lowest, pairs)
		}
	}
	return dgd
}

// workersOf are the pods of a generation that are there to stay.
func (w world) workersOf(id string) map[types.UID]corev1.Pod {
	w.Helper()
	all := map[types.UID]corev1.Pod{}
	for _, pod := range w.pods(w.ctx) {
		if pod.DeletionTimestamp == nil && pod.Labels[v1alpha1.LabelGeneration] == id {
			all[pod.UID] = pod
		}
	}
	return all
}

// runsOnly checks that all workers are of one generation, in full.
func (w world) runsOnly(id, image string) {
	w.Helper()
	if n := len(w.workersOf(id)); n != 2*pairs {
		w.Errorf("generation %s has %d pods", id, n)
	}
	for _, pod := range w.pods(w.ctx) {
		if of, worker := pod.Labels[v1alpha1.LabelGeneration]; worker && pod.DeletionTimestamp == nil && (of != id || !strings.HasSuffix(pod.Spec.Containers[0].Image, image)) {
			w.Errorf("%s of generation %s runs %s", pod.Name, of, pod.Spec.Containers[0].Image)
		}
	}
}

// remembered waits until one revision is left, with a result, and returns its generation.
func (w world) remembered(result revision.Result) string {
	w.Helper()
	var list appsv1.ControllerRevisionList
	w.eventually("one revision", func(ctx context.Context) error {
		if err := w.cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 || revision.ResultOf(&list.Items[0]) != result {
			return fmt.Errorf("%d revisions", len(list.Items))
		}
		return nil
	})
	return revision.Generation(&list.Items[0])
}

// rolloutSays runs a verb of the command line, and returns the code it ends with.
func (w world) rolloutSays(verb string) (said string, code int) {
	w.Helper()
	command := exec.CommandContext(w.ctx, filepath.Join(binDir, "kubectl-dynamo"), "rollout", verb, "quickstart", "--kubeconfig", w.cluster.Kubeconfig, "-n", w.namespace)
	output, err := command.CombinedOutput()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		w.Fatal(err)
	}
	return string(output), command.ProcessState.ExitCode()
}

// pairsSeen is what was seen of the pods from outside.
type pairsSeen struct {
	// states is how many were seen, and lowest how few pairs were ready in one of them.
	states, lowest int
	// at tells of that one.
	at string
}

// followPairs looks at every change of a pod until the returned function is called, from
// the first state on in which all pairs of some services are ready.
func (w world) followPairs(pairs int, services ...string) (*pairsSeen, func()) {
	w.Helper()
	changes, err := w.cluster.Client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	seen, now := &pairsSeen{}, map[types.UID]corev1.Pod{}
	var all sync.WaitGroup
	var enough atomic.Bool
	all.Go(func() {
		for event := range changes.ResultChan() {
			pod, is := event.Object.(*corev1.Pod)
			if !is {
				if !enough.Load() { // one that is stopped may end in an error
					w.Errorf("the watch of pods says %v", event.Object)
				}
				return
			}
			now[pod.UID] = *pod
			if event.Type == watch.Deleted {
				delete(now, pod.UID)
			}
			n, text := readyPairs(now, services)
			if seen.states == 0 && n < pairs {
				continue
			}
			if seen.states == 0 || n < seen.lowest {
				seen.lowest, seen.at = n, text
			}
			seen.states++
		}
		if !enough.Load() {
			w.Error("the watch of pods has ended too early")
		}
	})
	return seen, func() { enough.Store(true); changes.Stop(); all.Wait() }
}

// readyPairs counts the pairs, such as of prefill and decode, that generations have which
// have all of them: one that lacks another serves nobody.
func readyPairs(pods map[types.UID]corev1.Pod, services []string) (least int, text string) {
	ready := map[string]map[string]int{}
	for _, pod := range pods {
		service := pod.Labels[v1alpha1.LabelComponent]
		if !slices.Contains(services, service) || pod.DeletionTimestamp != nil || !podReady(pod) {
			continue
		}
		id := pod.Labels[v1alpha1.LabelGeneration]
		if ready[id] == nil {
			ready[id] = map[string]int{}
		}
		ready[id][service]++
	}
	sum := map[string]int{}
	for _, of := range ready {
		if len(of) == len(services) {
			for service, n := range of {
				sum[service] += n
			}
		}
	}
	least = sum[services[0]]
	for _, service := range services {
		least = min(least, sum[service])
	}
	return least, fmt.Sprint(ready)
}

// rollsOutInPairs changes the image of workers whose runtime knows no generations, while
// users ask: each generation has a frontend of its own, behind the same Service.
func (w world) rollsOutInPairs() {
	w.Helper()
	text, err := os.ReadFile(quickstart)
	if err != nil {
		w.Fatal(err)
	}
	w.applyText(strings.Replace(string(text), "name: quickstart\n", fmt.Sprintf("name: quickstart\n  annotations: {%s: %s}\n", v1alpha1.AnnotationRolloutIsolation, v1alpha1.IsolationPaired), 1))
	url := w.frontendURL(w.ready("quickstart"))
	w.answers(url)
	front := w.front()

	stop, users := w.users(url, 4)
	seen, watched := w.followPairs(1, "Frontend", "prefill", "decode")
	w.setImage("0.8.1")
	dgd := &v1alpha1.DynamoGraphDeployment{}
	w.eventually("the rollout to be completed", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("quickstart"), dgd); err != nil {
			return err
		}
		if st := dgd.Status.Rollout; st == nil || dgd.Status.ObservedGeneration != dgd.Generation || st.Phase != string(generation.PhaseCompleted) {
			return fmt.Errorf("rollout %+v", st)
		}
		return nil
	})
	watched()
	stop()
	outcomes := <-users
	for _, o := range openloop.Failed(outcomes) {
		w.Errorf("planned at %v, failed at %v: %v", o.Planned, o.Ended, o.Err)
	}
	if seen.states == 0 || seen.lowest < 1 {
		w.Errorf("in %d states of the pods, %d generations were complete at least: %s", seen.states, seen.lowest, seen.at)
	}
	id := dgd.Status.Rollout.Target
	if of := w.workersOf(id); len(of) != 3 {
		w.Errorf("generation %s has %d pods", id, len(of))
	}
	for _, pod := range w.pods(w.ctx) {
		if pod.DeletionTimestamp != nil {
			continue
		}
		got := map[string]string{}
		for _, v := range pod.Spec.Containers[0].Env {
			if strings.HasPrefix(v.Name, "DYN_NAMESPACE") {
				got[v.Name] = v.Value
			}
		}
		if diff := cmp.Diff(map[string]string{"DYN_NAMESPACE": w.namespace + "-quickstart-" + id}, got); diff != "" {
			w.Errorf("%s of generation %s (-want +got):\n%s", pod.Name, id, diff)
		}
	}
	if now := w.front(); now.UID != front.UID || !metav1.IsControlledBy(now, dgd) {
		w.Errorf("the Service of the frontends is another, or not the graph's: %v", now.OwnerReferences)
	}
	summary.Line(w.T, "generations with frontends of their own, under a runtime without generations, an image change: %d of %d requests failed, at least %d of 1 complete generation in %d states of the pods",
		len(openloop.Failed(outcomes)), len(outcomes), seen.lowest, seen.states)
}

// front is the Service of the frontends.
func (w world) front() *corev1.Service {
	w.Helper()
	service := &corev1.Service{}
	if err := w.cluster.Client.Get(w.ctx, w.key(graph.ServiceName("quickstart", "Frontend")), service); err != nil {
		w.Fatal(err)
	}
	return service
}
