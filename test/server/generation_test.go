package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// generational has workers rolled out by generations.
const generational = silent + "rollout: {generations: true}\n"

// kubelet plays who makes, starts and ends the pods of Deployments in one world, and
// watches from outside what serves: pairs of prefill and decode in one generation.
type kubelet struct {
	world
	// floor is how many pairs have to serve; zero while nothing is promised yet.
	floor atomic.Int64
	// lowest is how few did since.
	lowest atomic.Int64
	next   int
	// generations are those of pods by their address.
	generations sync.Map
}

func (w world) runPods() *kubelet {
	w.Helper()
	if err := cluster.Client.Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default"}}); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	k := &kubelet{world: w}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			if err := k.pass(); err != nil && !conflicting(err) && w.ctx.Err() == nil {
				w.Errorf("play the kubelet: %v", err)
				return
			}
			select {
			case <-tick.C:
			case <-w.Context().Done():
				return
			}
		}
	}()
	w.Cleanup(func() { <-done })
	return k
}

func (k *kubelet) pass() error {
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	if err := errors.Join(cluster.Client.List(k.ctx, &deployments, client.InNamespace(k.namespace)), cluster.Client.List(k.ctx, &pods, client.InNamespace(k.namespace))); err != nil {
		return err
	}
	k.watch(pods.Items)
	for _, d := range deployments.Items {
		var own []corev1.Pod
		for _, p := range pods.Items {
			if p.Labels["of"] == d.Name {
				own = append(own, p)
			}
		}
		switch want := int(*d.Spec.Replicas); {
		case len(own) < want:
			return k.make(d)
		case len(own) > want:
			return cluster.Client.Delete(k.ctx, &own[0], client.GracePeriodSeconds(0))
		}
		for _, p := range own {
			if ready(p) {
				continue
			}
			// It has been for as long as counts where no frontend can be asked.
			p.Status.Phase, p.Status.PodIP = corev1.PodRunning, p.Annotations["address"]
			p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
			k.generations.Store(p.Status.PodIP, p.Labels[v1alpha1.LabelGeneration])
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute))}}
			return cluster.Client.Status().Update(k.ctx, &p)
		}
	}
	return nil
}

func (k *kubelet) make(d appsv1.Deployment) error {
	k.next++
	labels := maps.Clone(d.Spec.Template.Labels)
	labels["of"] = d.Name
	return cluster.Client.Create(k.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: fmt.Sprintf("%s-%d", d.Name, k.next), Labels: labels, Annotations: map[string]string{"address": fmt.Sprintf("10.0.%d.%d", k.next/250, k.next%250+1)}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: d.Spec.Template.Spec.Containers[0].Image}}},
	})
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func pairs(pods []corev1.Pod) int64 {
	by := map[string]map[string]int64{}
	for _, p := range pods {
		if !ready(p) || p.DeletionTimestamp != nil {
			continue
		}
		id := p.Labels[v1alpha1.LabelGeneration]
		if by[id] == nil {
			by[id] = map[string]int64{}
		}
		by[id][p.Labels[v1alpha1.LabelComponent]]++
	}
	sum := map[string]int64{}
	for _, roles := range by {
		if len(roles) == 2 {
			for role, n := range roles {
				sum[role] += n
			}
		}
	}
	return min(sum["prefill"], sum["decode"])
}

// watch counts what serves before anything is changed, and tells if it is too little.
func (k *kubelet) watch(pods []corev1.Pod) {
	floor, n := k.floor.Load(), pairs(pods)
	if floor == 0 {
		return
	}
	if n < k.lowest.Load() {
		k.lowest.Store(n)
	}
	if n < floor {
		k.Errorf("%d pairs in complete generations serve, and at least %d have to", n, floor)
	}
}

// promise waits until all pairs serve, and from then on has a floor of them do.
func (k *kubelet) promise(all, floor int64) {
	k.Helper()
	k.eventually("all pairs to serve", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := cluster.Client.List(ctx, &pods, client.InNamespace(k.namespace)); err != nil || pairs(pods.Items) != all {
			return fmt.Errorf("%d pairs, %w", pairs(pods.Items), err)
		}
		return nil
	})
	k.lowest.Store(all)
	k.floor.Store(floor)
}

func (w world) pair(replicas int32) *v1alpha1.DynamoGraphDeployment {
	dgd := w.graph("chat", "prefill", "decode")
	for name, s := range dgd.Spec.Services {
		s.ComponentType, s.Replicas = v1alpha1.ComponentType(name), new(replicas)
		s.ExtraPodSpec.MainContainer.Image = "example.com/engine:1.0.0"
	}
	return dgd
}

func (w world) image(dgd *v1alpha1.DynamoGraphDeployment, tag string) {
	w.Helper()
	w.merge(dgd, fmt.Sprintf(`{"spec":{"services":{"prefill":{"extraPodSpec":{"mainContainer":{"image":"example.com/engine:%[1]s"}}},"decode":{"extraPodSpec":{"mainContainer":{"image":"example.com/engine:%[1]s"}}}}}}`, tag))
}

// phase waits until the rollout of the graph is in a phase, of which its spec is told.
func (w world) phase(phase string, more func(*v1alpha1.DynamoGraphDeployment) bool) *v1alpha1.DynamoGraphDeployment {
	w.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	w.eventually("the rollout to be "+phase, func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("chat"), dgd); err != nil {
			return err
		}
		if st := dgd.Status.Rollout; st == nil || st.Phase != phase || dgd.Status.ObservedGeneration != dgd.Generation || more != nil && !more(dgd) {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	return dgd
}

func (w world) podsOf(id string) map[types.UID]bool {
	w.Helper()
	var pods corev1.PodList
	if err := cluster.Client.List(w.ctx, &pods, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelGeneration: id}); err != nil {
		w.Fatal(err)
	}
	all := map[types.UID]bool{}
	for _, p := range pods.Items {
		all[p.UID] = true
	}
	return all
}

// TestARolloutByGenerationsKeepsItsFloor: an image change of a pair of prefill and
// decode, through the restart of the operator half-way, and a change back half-way
// through another.
func TestARolloutByGenerationsKeepsItsFloor(t *testing.T) {
	for name, replicas := range map[string]int32{"1D1P": 1, "2D2P": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.operate(generational)
			w.rollOut()
			k := w.runPods()
			dgd := w.pair(replicas)
			w.create(dgd)
			w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
			var first string
			w.eventually("the first revision", func(ctx context.Context) error {
				var list appsv1.ControllerRevisionList
				if err := cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) != 1 {
					return fmt.Errorf("%d revisions, %w", len(list.Items), err)
				}
				first = list.Items[0].Labels[v1alpha1.LabelGeneration]
				return nil
			})
			k.promise(int64(replicas), int64(replicas))

			w.image(dgd, "1.1.0")
			w.eventually("the rollout to begin", func(ctx context.Context) error {
				var list v1alpha1.DynamoComponentDeploymentList
				if err := cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) < 3 {
					return fmt.Errorf("%d components, %w", len(list.Items), err)
				}
				return nil
			})
			w.stop(o)
			w.operate(generational)
			now := w.phase("Completed", func(d *v1alpha1.DynamoGraphDeployment) bool { return d.Status.Rollout.Stable != first })
			second := now.Status.Rollout.Stable
			w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
			w.says("chat", v1alpha1.ConditionServing, v1alpha1.ReasonAtFloor)
			for service, role := range now.Status.Rollout.Roles {
				if role.Lowest < role.Floor {
					t.Errorf("%s: %+v", service, role)
				}
			}

			// A change back keeps the pods that run.
			before := w.podsOf(second)
			w.image(dgd, "1.2.0")
			w.eventually("the next to begin", func(ctx context.Context) error {
				var list v1alpha1.DynamoComponentDeploymentList
				if err := cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) < 3 {
					return fmt.Errorf("%d components, %w", len(list.Items), err)
				}
				return nil
			})
			w.image(dgd, "1.1.0")
			w.phase("Completed", func(d *v1alpha1.DynamoGraphDeployment) bool { return d.Status.Rollout.Stable == second })
			kept := 0
			for uid := range w.podsOf(second) {
				if before[uid] {
					kept++
				}
			}
			// The surge lets a new unit come before an old one goes.
			if kept == 0 {
				t.Errorf("of %d stable pods none is left after a revert", len(before))
			}
			w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
			t.Logf("at least %d of %d pairs served, %d of %d stable pods outlived the revert", k.lowest.Load(), replicas, kept, len(before))
		})
	}
}

// TestAGraphThatNobodyChangesStartsNoGeneration: what a server keeps of its workers is
// read back as what the graph means, with all that is told to them beside.
func TestAGraphThatNobodyChangesStartsNoGeneration(t *testing.T) {
	w := newWorld(t)
	w.operate(generational)
	w.rollOut()
	w.runPods()
	dgd := w.pair(1)
	dgd.Spec.Experimental = &v1alpha1.GraphExperimental{KVTransferPolicy: &v1alpha1.KVTransferPolicy{LabelKey: corev1.LabelTopologyZone, Domain: "zone"}}
	w.create(dgd)
	w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	w.quiet()
	var list v1alpha1.DynamoComponentDeploymentList
	if err := cluster.Client.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) != 2 {
		t.Errorf("%d components, %v", len(list.Items), err)
	}
}

// TestACandidateThatKeepsCrashingIsAborted: it has served, at a step, and then containers
// of it end three times, twice in one pod.
func TestACandidateThatKeepsCrashingIsAborted(t *testing.T) {
	w := newWorld(t)
	w.operate(generational)
	w.rollOut()
	k := w.runPods()
	dgd := w.pair(2)
	dgd.Annotations = map[string]string{v1alpha1.AnnotationRolloutSteps: "1 hold"}
	w.create(dgd)
	w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	k.promise(2, 2)
	w.image(dgd, "1.1.0")
	held := w.phase("Held", nil).Status.Rollout
	var pods corev1.PodList
	if err := cluster.Client.List(w.ctx, &pods, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelGeneration: held.Target}); err != nil || len(pods.Items) != 2 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	ended := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, ContainerID: "test://" + id}}
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		status := corev1.ContainerStatus{Name: "main", RestartCount: 1, LastTerminationState: ended(pod.Name), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		if pod.Labels[v1alpha1.LabelComponent] == "decode" {
			status.State = ended(pod.Name + "-again")
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		if err := cluster.Client.Status().Update(w.ctx, pod); err != nil {
			t.Fatal(err)
		}
	}
	now := w.phase("Aborted", nil).Status.Rollout
	if now.Reason != "CandidateCrashed" || now.Stable != held.Stable {
		t.Errorf("%+v", now)
	}
	w.says("chat", v1alpha1.ConditionServing, v1alpha1.ReasonAtFloor)
}

// TestARestartByGenerationsKeepsItsFloor: all pods are replaced by those of a generation
// that is told the same, of which no other version of the spec is on record.
func TestARestartByGenerationsKeepsItsFloor(t *testing.T) {
	w := newWorld(t)
	w.operate(generational)
	w.rollOut()
	k := w.runPods()
	dgd := w.pair(2)
	dgd.Annotations = map[string]string{v1alpha1.AnnotationRolloutSteps: "1 hold"}
	w.create(dgd)
	w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	first := w.onlyRevision("")
	k.promise(2, 2)
	before := w.podsOf(first)

	w.merge(dgd, `{"spec":{"restart":{"id":"1"}}}`)
	w.restart("chat", "1", v1alpha1.RestartPhaseCompleted)
	now := w.phase("Completed", func(d *v1alpha1.DynamoGraphDeployment) bool { return d.Status.Rollout.Stable != first }).Status.Rollout
	if after := w.podsOf(now.Stable); len(after) != len(before) || len(w.podsOf(first)) > 0 {
		t.Errorf("%d pods before, %d after, %d are left", len(before), len(after), len(w.podsOf(first)))
	}
	for service, role := range now.Roles {
		if role.Lowest < role.Floor {
			t.Errorf("%s: %+v", service, role)
		}
	}
	if id := w.onlyRevision(first); id != now.Stable {
		t.Errorf("the revision is of generation %s, and %s runs", id, now.Stable)
	}
	w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	t.Logf("at least %d of 2 pairs served", k.lowest.Load())
}

// onlyRevision waits for the one revision of a graph to be of another generation than
// before.
func (w world) onlyRevision(before string) (id string) {
	w.Helper()
	w.eventually("one revision", func(ctx context.Context) error {
		var list appsv1.ControllerRevisionList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d revisions, %w", len(list.Items), err)
		}
		if id = list.Items[0].Labels[v1alpha1.LabelGeneration]; id == before {
			return errors.New("it is of generation " + id)
		}
		return nil
	})
	return id
}
