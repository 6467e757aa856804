package resilience

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// TestRealChaos kills what the graph stands on, at moments and in an order that
// the seed decides, while clients go on asking. It promises nothing of the time
// in between; in the end the world is as the spec says.
func TestRealChaos(t *testing.T) {
	w := newWorld(t, "chaos", 15*time.Minute)
	w.apply(disaggregated)
	w.answers()

	clients, began := w.traffic(10), time.Now()
	c := &chaos{world: w, random: rand.New(rand.NewPCG(*seed, *seed)), began: began}
	t.Logf("seed %d", *seed)
	c.strike()
	for time.Since(began) < *duration {
		c.wait(2*time.Second + time.Duration(c.random.Int64N(int64(6*time.Second))))
		c.strike()
	}
	calm := time.Now()
	c.recover.Wait()
	w.eventually("the world to be as the spec says", w.asSpecified)
	whole := time.Since(calm)
	asked := clients.end()

	failed := 0
	for _, a := range asked {
		if a.err != nil {
			failed++
		}
	}
	summary.Line(t, "chaos, seed %d: %d faults in %.0f s, %d of %d requests answered (%.1f %%); all as specified %.1f s after the last",
		*seed, len(c.faults), calm.Sub(began).Seconds(), len(asked)-failed, len(asked), 100*float64(len(asked)-failed)/float64(len(asked)), whole.Seconds())
	c.tell(asked)

	after := w.traffic(4)
	c.wait(15 * time.Second)
	again := after.end()
	for _, failure := range failures(again, calm) {
		t.Error("after the chaos:", failure)
	}
	summary.Line(t, "after the chaos: %d requests, %d failed", len(again), len(failures(again, calm)))
}

// fault is something that was done, and how long it took to be overcome.
type fault struct {
	kind, what string
	at         time.Time
	recovered  time.Duration
}

type chaos struct {
	world
	random *rand.Rand
	began  time.Time

	kinds   []string // left of a round
	mu      sync.Mutex
	faults  []*fault
	lost    bool // one node at a time
	recover sync.WaitGroup
}

func (c *chaos) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
		c.Fatal(c.ctx.Err())
	}
}

// strike does one thing. Each round has all of them, in an order of its own.
func (c *chaos) strike() {
	if len(c.kinds) == 0 {
		c.kinds = []string{"operator", "kube-apiserver", "etcd", "node", "engine", "engine", "frontend"}
		c.random.Shuffle(len(c.kinds), func(i, j int) { c.kinds[i], c.kinds[j] = c.kinds[j], c.kinds[i] })
	}
	kind := c.kinds[0]
	c.kinds = c.kinds[1:]
	switch kind {
	case "operator":
		c.killPods(kind, localenv.OperatorKey.Namespace, client.MatchingLabels{"control-plane": "controller-manager"}, -1)
	case "kube-apiserver", "etcd":
		c.killServer(kind)
	case "node":
		c.loseNode()
	case "engine":
		service := []string{"decode", "prefill"}[c.random.IntN(2)]
		c.killPods(kind, c.namespace, client.MatchingLabels{v1alpha1.LabelComponent: service}, c.random.IntN(2))
	case "frontend":
		c.killPods(kind, c.namespace, client.MatchingLabels{v1alpha1.LabelComponent: "Frontend"}, c.random.IntN(2))
	}
}

// struck notes a fault and waits, beside what follows, for it to be overcome.
func (c *chaos) struck(kind, what string, overcome func(ctx context.Context) error) {
	f := &fault{kind: kind, what: what, at: time.Now()}
	c.Logf("%5.1fs %s %s", f.at.Sub(c.began).Seconds(), kind, what)
	c.mu.Lock()
	c.faults = append(c.faults, f)
	c.mu.Unlock()
	c.recover.Go(func() {
		if err := c.cluster.Eventually(c.ctx, kind+" "+what+" to be overcome", patient(overcome)); err != nil {
			c.Error(err)
		}
		f.recovered = time.Since(f.at)
	})
}

// patient lets no single attempt hang.
func patient(try func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return try(ctx)
	}
}

func (c *chaos) killServer(program string) {
	pids, err := process.Of(filepath.Dir(c.cluster.Kubeconfig), program)
	if err != nil || process.Kill(pids[0]) != nil {
		return // it is down already
	}
	c.struck(program, "", func(ctx context.Context) error {
		_, err := c.deployments(ctx)
		return err
	})
}

// killPods kills the processes of all pods with some labels, or of the n-th.
func (c *chaos) killPods(kind, namespace string, labels client.MatchingLabels, n int) {
	var list corev1.PodList
	err := c.cluster.Eventually(c.ctx, "the pods", patient(func(ctx context.Context) error {
		return c.cluster.Client.List(ctx, &list, client.InNamespace(namespace), labels)
	}))
	if err != nil {
		c.Fatal(err)
	}
	for i, pod := range list.Items {
		if n >= 0 && i != n {
			continue
		}
		pid, err := process.InPod(pod.UID)
		if err != nil || process.Kill(pid) != nil {
			c.Logf("%5.1fs %s %s does not run now", time.Since(c.began).Seconds(), kind, pod.Name)
			continue
		}
		restarts := restartsOf(pod)
		c.struck(kind, pod.Name, func(ctx context.Context) error {
			now := &corev1.Pod{}
			err := c.cluster.Client.Get(ctx, client.ObjectKeyFromObject(&pod), now)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil && now.DeletionTimestamp == nil && (!isReady(*now) || restartsOf(*now) <= restarts) {
				return errors.New("not restarted")
			}
			return nil
		})
	}
}

func restartsOf(pod corev1.Pod) int32 {
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0
	}
	return pod.Status.ContainerStatuses[0].RestartCount
}

// loseNode takes a node with a worker of the graph off the network for up to a
// minute; sometimes it is given up meanwhile, sometimes not.
func (c *chaos) loseNode() {
	c.mu.Lock()
	busy := c.lost
	c.lost = true
	c.mu.Unlock()
	pick, away := c.random.IntN(1000), 10*time.Second+time.Duration(c.random.Int64N(int64(50*time.Second)))
	if busy {
		return
	}
	var list corev1.PodList
	err := c.cluster.Eventually(c.ctx, "the pods", patient(func(ctx context.Context) error {
		err := c.cluster.Client.List(ctx, &list, client.InNamespace(c.namespace))
		if err == nil && len(list.Items) == 0 {
			err = errors.New("none")
		}
		return err
	}))
	if err != nil {
		c.Fatal(err)
	}
	name := list.Items[pick%len(list.Items)].Spec.NodeName
	if name == "" || c.mark(name, `"true"`) != nil {
		c.mu.Lock()
		c.lost = false
		c.mu.Unlock()
		return
	}
	back, returned := time.Now().Add(away), false
	c.struck("node", fmt.Sprintf("%s for %.0f s", name, away.Seconds()), func(ctx context.Context) error {
		if time.Now().Before(back) {
			return errors.New("away")
		}
		if !returned {
			if err := c.mark(name, "null"); err != nil {
				return err
			}
			returned = true
			c.mu.Lock()
			c.lost = false
			c.mu.Unlock()
		}
		return c.allReady(ctx)
	})
}

// mark loses a node, or gives it back.
func (c *chaos) mark(node, lost string) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"localcluster.dynamo/lost":%s}}}`, lost))
	return c.cluster.Eventually(c.ctx, "the node to be marked", patient(func(ctx context.Context) error {
		return c.cluster.Client.Patch(ctx, object, patch)
	}))
}

// allReady holds when each Deployment has the replicas it should have.
func (w world) allReady(ctx context.Context) error {
	all, err := w.deployments(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if s := d.Status; s.ObservedGeneration != d.Generation || s.Replicas != 2 || s.ReadyReplicas != 2 || s.UpdatedReplicas != 2 {
			return fmt.Errorf("%s: %+v", d.Name, s)
		}
	}
	if len(all) != 3 {
		return fmt.Errorf("%d Deployments", len(all))
	}
	return nil
}

// asSpecified holds when the world is what the spec says: the graph ready, its
// replicas right, and nothing left of what was lost.
func (w world) asSpecified(ctx context.Context) error {
	if err := errors.Join(w.isReady(ctx), w.allReady(ctx)); err != nil {
		return err
	}
	pods := map[string]bool{}
	for _, pod := range w.pods(ctx) {
		if !isReady(pod) {
			return fmt.Errorf("pod %s is not ready, or leaving", pod.Name)
		}
		pods[pod.Name] = true
	}
	if len(pods) != 6 {
		return fmt.Errorf("%d pods", len(pods))
	}
	var workers v1alpha1.DynamoWorkerMetadataList
	if err := w.cluster.Client.List(ctx, &workers, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	for _, worker := range workers.Items {
		if !pods[worker.Name] {
			return fmt.Errorf("the metadata of worker %s outlived it", worker.Name)
		}
	}
	if len(workers.Items) != 4 {
		return fmt.Errorf("%d workers have said what they serve", len(workers.Items))
	}
	return nil
}

// tell says for each kind of fault how long it took to be overcome, and how long
// after it requests still failed before the next fault.
func (c *chaos) tell(asked []asking) {
	kinds := map[string][]string{}
	for i, f := range c.faults {
		until := time.Now()
		if i+1 < len(c.faults) {
			until = c.faults[i+1].at
		}
		failed, spell := 0, time.Duration(0)
		for _, a := range asked {
			if a.err != nil && a.ended.After(f.at) && a.ended.Before(until) {
				failed, spell = failed+1, max(spell, a.ended.Sub(f.at))
			}
		}
		kinds[f.kind] = append(kinds[f.kind], fmt.Sprintf("%.1f s (%d failed within %.1f s)", f.recovered.Seconds(), failed, spell.Seconds()))
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		summary.Line(c.T, "chaos: %s overcome after %s", kind, strings.Join(kinds[kind], ", "))
	}
	why := map[string]int{}
	for _, a := range asked {
		if a.err != nil {
			why[shortened(a.err.Error())]++
		}
	}
	for _, text := range slices.Sorted(maps.Keys(why)) {
		c.Logf("%d requests failed: %s", why[text], text)
	}
}

func shortened(text string) string {
	const most = 160
	if len(text) > most {
		return text[:most]
	}
	return text
}
