package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

var (
	idleGraphs = flag.Int("idle-graphs", 20, "graphs that the idle operator is watched with, and that are deleted under it")
	idleFor    = flag.Duration("idle-for", 20*time.Second, "how long it is watched")
)

// TestManyGraphs brings many graphs up once and shows three things on them. Not
// parallel: the operator is killed under them.
func TestManyGraphs(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	w.ctx = ctx
	for i := range *idleGraphs {
		w.create(w.restful(fmt.Sprintf("g%03d", i)))
	}
	w.allReady()

	t.Run("an idle operator writes nothing", func(t *testing.T) {
		// On a busy machine it may still have had something to tell at first.
		w.quiet(*idleFor)
		summary.Line(t, "idle: %d graphs, %s without a mutating request by the operator", *idleGraphs, *idleFor)
	})
	t.Run("an operator that was killed writes nothing when it comes back", func(t *testing.T) {
		mark := w.mark()
		w.killOperator()
		// It is at work again once it has brought up a graph somewhere else.
		other := newWorld(t)
		other.create(other.restful("g"))
		other.ready("g")
		w.wait(*idleFor)
		if writes := w.byOperator(mark); len(writes) > 0 {
			t.Errorf("%d graphs, %s: %s", *idleGraphs, *idleFor, tally(writes))
		}
		summary.Line(t, "idle after kill -9: %d graphs, %s, %d mutating requests by the operator", *idleGraphs, *idleFor, len(w.byOperator(mark)))
	})
	t.Run("foreground deletion leaves nothing behind though the operator is killed", func(t *testing.T) {
		mark := w.mark()
		for i := range *idleGraphs {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("g%03d", i)}}
			if err := w.cluster.Client.Delete(w.ctx, dgd, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
				t.Fatal(err)
			}
			if i == *idleGraphs/2 {
				w.killOperator()
			}
		}
		w.empty()
		w.nothingMadeAfterDeletion(mark)
	})
}

// restful is a graph whose pods do nothing, and say that they are well.
func (w world) restful(name string) *v1alpha1.DynamoGraphDeployment {
	well := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 60}
	service := func(kind v1alpha1.ComponentType) *v1alpha1.SharedSpec {
		return &v1alpha1.SharedSpec{
			ComponentType: kind, Replicas: new(int32(1)), LivenessProbe: well, ReadinessProbe: well,
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "example.com/at-rest:1", Command: []string{"rest"}, Args: []string{"a while"}, StartupProbe: well}},
		}
	}
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
		"Frontend": service(v1alpha1.ComponentTypeFrontend), "decode": service(v1alpha1.ComponentTypeWorker), "prefill": service(v1alpha1.ComponentTypeWorker),
	}
	return dgd
}

// allReady waits for every graph of this world.
func (w world) allReady() {
	w.Helper()
	w.eventually("all graphs to be ready", func(ctx context.Context) error {
		var list v1alpha1.DynamoGraphDeploymentList
		if err := w.cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		ready, last := 0, ""
		for _, dgd := range list.Items {
			if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
				ready++
			} else if c != nil {
				last = dgd.Name + ": " + c.Message
			}
		}
		if ready < len(list.Items) {
			return fmt.Errorf("%d of %d are; %s", ready, len(list.Items), last)
		}
		return nil
	})
}

// wait lets time pass; the only thing that can be done to see that nothing
// happens in it.
func (w world) wait(d time.Duration) {
	w.Helper()
	select {
	case <-time.After(d):
	case <-w.ctx.Done():
		w.Fatal(w.ctx.Err())
	}
}

// killOperator ends the operator as a crash would, and waits until it is back.
func (w world) killOperator() {
	w.Helper()
	before := -1
	w.eventually("an operator that is ready", func(context.Context) error {
		if before = w.operatorRestarts(); before < 0 {
			return errors.New("it is not")
		}
		return nil
	})
	for _, pid := range processesOf(w.T, w.cluster, "dynamo-operator") {
		kill(w.T, pid)
	}
	w.eventually("the operator to be back", func(context.Context) error {
		if now := w.operatorRestarts(); now <= before {
			return fmt.Errorf("%d restarts", now)
		}
		return nil
	})
}

// operatorRestarts is the number of restarts of an operator that is ready; -1 of
// one that is not.
func (w world) operatorRestarts() int {
	w.Helper()
	var pods corev1.PodList
	if err := w.cluster.Client.List(w.ctx, &pods, client.InNamespace(localenv.OperatorKey.Namespace), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		w.Fatal(err)
	}
	restarts := 0
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if !c.Ready {
				return -1
			}
			restarts += int(c.RestartCount)
		}
	}
	return restarts
}

// childKinds are all kinds that the operator or others make from a graph.
var childKinds = []schema.GroupVersionKind{
	{Group: "nvidia.com", Version: "v1alpha1", Kind: "DynamoGraphDeployment"},
	{Group: "nvidia.com", Version: "v1alpha1", Kind: "DynamoComponentDeployment"},
	{Group: "nvidia.com", Version: "v1alpha1", Kind: "DynamoGraphDeploymentScalingAdapter"},
	{Group: "nvidia.com", Version: "v1alpha1", Kind: "DynamoWorkerMetadata"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
}

// ofNamespace are objects that serve a namespace and outlive its graphs.
var ofNamespace = []string{"default", "kube-root-ca.crt", "planner-serviceaccount", "planner-serviceaccount-binding"}

// empty waits until nothing is left of what this world's graphs became.
func (w world) empty() {
	w.Helper()
	w.eventually("everything to be gone", func(ctx context.Context) error {
		var left []string
		for _, kind := range childKinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := w.cluster.Client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			for _, object := range list.Items {
				if !slices.Contains(ofNamespace, object.GetName()) {
					left = append(left, kind.Kind+" "+object.GetName())
				}
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d are left: %s", len(left), strings.Join(left[:min(len(left), 5)], ", "))
		}
		return nil
	})
}

// nothingMadeAfterDeletion checks that the operator made no child of a graph
// after somebody asked for the graph's deletion.
func (w world) nothingMadeAfterDeletion(mark int64) {
	w.Helper()
	deleted := map[string]time.Time{}
	for _, one := range w.since(mark) {
		graph, _, _ := strings.Cut(one.Ref.Name, "-")
		switch {
		case one.Verb == "delete" && one.Ref.Resource == "dynamographdeployments":
			deleted[graph] = one.Received
		case one.User.Username == operatorUser && one.Made() && one.Ref.Resource != "events":
			if at, going := deleted[graph]; going && one.Received.After(at) {
				w.Errorf("%s %s %s after the deletion of %s", one, one.Ref.Name, one.Received.Sub(at), graph)
			}
		}
	}
	if len(deleted) == 0 {
		w.Error("the audit log shows no deletion")
	}
}
