package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/etcd"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/etcdserver"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// TestOnABareCluster shows what needs a cluster of its own: without optional
// APIs, with an operator that was away, and with a node that can be spared.
func TestOnABareCluster(t *testing.T) {
	t.Parallel()
	cluster := need(t, bare)
	store := etcdserver.Start(t, binDir)
	inherited := newWorldOn(t, cluster)
	inherited.spare(2)
	inherited.scaleOperator(0)
	// The garbage collector reads by the preferred version, which would need a
	// converter, and here it works while nobody converts.
	inherited.configureOperator("endpoints: {etcd: \"" + store.Address + "\"}\napi: {v1beta1: {enabled: false}}\n" + generational + "\n" + sleepy)
	inherited.mayActivate()
	inherited.scaleOperator(1)
	inherited.create(inherited.restful("old"))
	inherited.ready("old")
	inherited.settled()
	away, present := newWorldOn(t, cluster, "away"), newWorldOn(t, cluster, "present")
	away.createsClaims()
	present.createsClaims()
	inherited.scaleOperator(0)
	legacy := inherited.bequeath("old")
	away.deletesGraphs()
	away.collected()
	for _, c := range claimCases {
		present.earlierClaim(c.name)
	}
	inherited.scaleOperator(1)

	t.Run("", func(t *testing.T) {
		t.Run("children of an earlier operator are adopted and nothing restarts", func(t *testing.T) {
			t.Parallel()
			inherited := inherited
			inherited.T = t
			inherited.adopted(legacy)
		})
		t.Run("claims are retained if they are to be when their graph is deleted, also while no operator runs", func(t *testing.T) {
			t.Parallel()
			away := away
			away.T = t
			away.claimsAreAsAsked()
		})
		t.Run("claims of an earlier operator are retained if they are to be when their graph is deleted", func(t *testing.T) {
			t.Parallel()
			present := present
			present.T = t
			present.releasesEarlierClaims()
			present.deletesGraphs()
			present.claimsAreAsAsked()
		})
		t.Run("an optional API that appears is used without a restart", func(t *testing.T) {
			t.Parallel()
			newWorldOn(t, cluster).usesLaterAPI()
		})
		t.Run("pods of a lost node are replaced elsewhere", func(t *testing.T) {
			t.Parallel()
			newWorldOn(t, cluster).survivesNode()
		})
		t.Run("an image change is rolled out by generations, and taken back half-way, while every request is answered and no pair is missing", func(t *testing.T) {
			t.Parallel()
			newWorldOn(t, cluster).rollsOutByGenerations("Deployments")
		})
		t.Run("frontends and workers of a runtime without generations are rolled out in pairs, while every request is answered", func(t *testing.T) {
			t.Parallel()
			newWorldOn(t, cluster).rollsOutInPairs()
		})
		t.Run("a graph sleeps when nobody asks, and wakes without losing a request", func(t *testing.T) {
			t.Parallel()
			newWorldOn(t, cluster).sleepsAndWakes()
		})
		t.Run("a wake adds little to a start", func(t *testing.T) {
			t.Parallel()
			newWorldOn(t, cluster).wakesSoon()
		})
		t.Run("keys in etcd go with their component", func(t *testing.T) {
			t.Parallel()
			newWorldOn(t, cluster).clearsKeys(store)
		})
	})
}

// scaleOperator has the operator run, or not.
func (w world) scaleOperator(replicas int32) {
	w.Helper()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = localenv.OperatorKey.Namespace, localenv.OperatorKey.Name
	if err := w.cluster.Client.Patch(w.ctx, d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))); err != nil {
		w.Fatal(err)
	}
	w.eventually(fmt.Sprintf("%d operators", replicas), func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, localenv.OperatorKey, d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != replicas || d.Status.AvailableReplicas != replicas {
			return fmt.Errorf("status %+v", d.Status)
		}
		// One that is on its way out may still write.
		var pods corev1.PodList
		if err := w.cluster.Client.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		if len(pods.Items) != int(replicas) {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		return nil
	})
}

// configureOperator adds lines to the configuration that the operator reads when
// it starts.
func (w world) configureOperator(lines string) {
	w.Helper()
	var maps corev1.ConfigMapList
	if err := w.cluster.Client.List(w.ctx, &maps, client.InNamespace(localenv.OperatorKey.Namespace)); err != nil {
		w.Fatal(err)
	}
	for i := range maps.Items {
		config := &maps.Items[i]
		if text, found := config.Data["config.yaml"]; found {
			config.Data["config.yaml"] = text + lines + "\n"
			if err := w.cluster.Client.Update(w.ctx, config); err != nil {
				w.Fatal(err)
			}
			return
		}
	}
	w.Fatal("the operator has no configuration")
}

// usesLaterAPI deploys a graph that needs an API which is installed only then.
func (w world) usesLaterAPI() {
	w.Helper()
	w.apply("../../examples/vllm-ray.yaml")
	w.eventually("the graph to say what is missing", func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := w.cluster.Client.Get(ctx, w.key("vllm-ray"), dgd); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, "decode spans 2 nodes; install LeaderWorkerSet") {
			return fmt.Errorf("condition %v", ready)
		}
		if dgd.Status.State != v1alpha1.GraphStatePending {
			return fmt.Errorf("state %q", dgd.Status.State)
		}
		return nil
	})
	for _, definition := range []string{"volcano/volcano-podgroup.yaml", "lws/leaderworkerset.x-k8s.io_leaderworkersets.yaml"} {
		w.apply(filepath.Join(binDir, "addons", definition))
	}
	mark := w.mark()
	w.eventually("the LeaderWorkerSet to be made", func(ctx context.Context) error {
		return w.cluster.Client.Get(ctx, w.key("vllm-ray-decode-0"), &lwsv1.LeaderWorkerSet{})
	})
	w.settled()
	summary.Line(w.T, "LWS installed later: %s", tally(w.byOperator(mark)))
}

// spare marks nodes that can be spared.
const spare = "e2e/spare"

// spare keeps nodes on which nothing runs for pods that ask for them, so that
// nobody else misses one that is lost.
func (w world) spare(number int) {
	w.Helper()
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := errors.Join(w.cluster.Client.List(w.ctx, &nodes), w.cluster.Client.List(w.ctx, &pods)); err != nil {
		w.Fatal(err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if number == 0 {
			return
		}
		if slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == node.Name }) {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%[1]q:"true"}},"spec":{"taints":[{"key":%[1]q,"effect":"NoSchedule"}]}}`, spare)
		if err := w.cluster.Client.Patch(w.ctx, node, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
			w.Fatal(err)
		}
		number--
	}
	if number > 0 {
		w.Fatalf("%d more nodes would have to be spared", number)
	}
}

// survivesNode takes the node of a pod off the network.
func (w world) survivesNode() {
	w.Helper()
	dgd := w.restful("spread")
	dgd.Spec.Services["decode"].ExtraPodSpec.PodSpec = &corev1.PodSpec{
		NodeSelector: map[string]string{spare: "true"},
		Tolerations:  []corev1.Toleration{{Key: spare, Operator: corev1.TolerationOpExists}},
	}
	w.create(dgd)
	w.ready("spread")
	w.settled()
	lost := w.podOf("spread", "decode")
	node := &corev1.Node{}
	node.Name = lost.Spec.NodeName
	mark := w.mark()
	if err := w.cluster.Client.Patch(w.ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"localcluster.dynamo/lost":"true"}}}`))); err != nil {
		w.Fatal(err)
	}
	w.eventually("another pod elsewhere", func(ctx context.Context) error {
		for _, pod := range w.pods(ctx) {
			if pod.Labels[v1alpha1.LabelComponent] == "decode" && pod.UID != lost.UID && pod.Spec.NodeName != lost.Spec.NodeName && pod.Spec.NodeName != "" {
				return nil
			}
		}
		return errors.New("none yet")
	})
	if err := w.cluster.Client.Patch(w.ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"localcluster.dynamo/lost":null}}}`))); err != nil {
		w.Fatal(err)
	}
	w.ready("spread")
	w.healed("a lost node", mark, "")
}

// clearsKeys deletes a graph of the etcd backend whose store is away at first.
func (w world) clearsKeys(store *etcdserver.Server) {
	w.Helper()
	dgd := w.restful("keyed")
	dgd.Annotations = map[string]string{v1alpha1.AnnotationDiscoveryBackend: v1alpha1.DiscoveryBackendEtcd}
	w.create(dgd)
	w.ready("keyed")
	space := graph.DynamoNamespace(w.namespace, "keyed", false)
	for _, service := range []string{"decode", "decode2"} {
		store.Put(w.T, etcd.Tree(space, service)+"/generate/1")
	}
	store.Stop()
	if err := w.cluster.Client.Delete(w.ctx, dgd); err != nil {
		w.Fatal(err)
	}
	w.eventually("the component to say what holds it", func(ctx context.Context) error {
		dcd := &v1alpha1.DynamoComponentDeployment{}
		if err := w.cluster.Client.Get(ctx, w.key("keyed-decode"), dcd); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable); c == nil || c.Reason != v1alpha1.ReasonFinalizerFailed {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	store.Run(w.T)
	w.empty()
	keys, err := store.Keys()
	if err != nil {
		w.Fatal(err)
	}
	if want := []string{etcd.Tree(space, "decode2") + "/generate/1"}; !slices.Equal(keys, want) {
		w.Errorf("keys %v are left, want %v", keys, want)
	}
}
