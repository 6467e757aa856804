package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAScalingAdapterDecidesAboutItsService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, err := os.ReadFile(quickstart)
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(t.TempDir(), "graph.yaml")
	adapted := strings.Replace(string(text), "    decode:\n", "    decode:\n      scalingAdapter: {enabled: true}\n", 1)
	if err := os.WriteFile(manifest, []byte(adapted), 0o600); err != nil {
		t.Fatal(err)
	}
	w.apply(manifest)
	w.ready("quickstart")

	w.kubectl("scale", "dgdsa/quickstart-decode", "--replicas=2")
	w.scaled("quickstart", "decode", 2, 1)

	// A manifest that still says one replica changes no pod.
	w.apply(manifest)
	w.scaled("quickstart", "decode", 2, 1)

	// An autoscaler finds the adapter's scale, and writes it: what is below its least needs
	// no metric.
	w.kubectl("autoscale", "dgdsa/quickstart-decode", "--min=3", "--max=4", "--cpu=50%")
	w.eventually("the autoscaler to be able to scale", func(ctx context.Context) error {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := w.cluster.Client.Get(ctx, w.key("quickstart-decode"), hpa); err != nil {
			return err
		}
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", hpa.Status.Conditions)
	})
	w.scaled("quickstart", "decode", 3, 1)
	w.kubectl("delete", "hpa", "quickstart-decode")

	// As KEDA does when nothing comes.
	w.kubectl("scale", "dgdsa/quickstart-decode", "--replicas=0")
	w.scaled("quickstart", "decode", 0, 1)
	w.kubectl("scale", "dgdsa/quickstart-decode", "--replicas=1")
	w.scaled("quickstart", "decode", 1, 1)
}

// TestTheOriginalsPlannerScales replays what its image writes, which does not run here:
// under its account, to the adapter's scale, and where there is none to the graph.
func TestTheOriginalsPlannerScales(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dgd := w.restful("g")
	planner := dgd.Spec.Services["decode"].DeepCopy()
	planner.ComponentType = v1alpha1.ComponentTypePlanner
	dgd.Spec.Services["Planner"] = planner
	dgd.Spec.Services["decode"].ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
	w.create(dgd)
	w.ready("g")
	config := rest.CopyConfig(w.cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + w.namespace + ":planner-serviceaccount",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + w.namespace, "system:authenticated"},
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(service string, replicas int) {
		t.Helper()
		adapters := objects.Resource(v1alpha1.SchemeGroupVersion.WithResource("dynamographdeploymentscalingadapters")).Namespace(w.namespace)
		_, err := adapters.Patch(w.ctx, "g-"+service, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}, "scale")
		if apierrors.IsNotFound(err) {
			graphs := objects.Resource(v1alpha1.SchemeGroupVersion.WithResource("dynamographdeployments")).Namespace(w.namespace)
			_, err = graphs.Patch(w.ctx, "g", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"services":{%q:{"replicas":%d}}}}`, service, replicas), metav1.PatchOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Prefill first, as it does.
	write("prefill", 2)
	write("decode", 3)
	w.scaled("g", "decode", 3, 1)
	w.eventually("2 pods of prefill", func(context.Context) error {
		if n := w.count("g", "prefill"); n != 2 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
}

func TestAServiceIsScaledToZeroAndBack(t *testing.T) {
	t.Parallel()
	for kind, c := range map[v1alpha1.ComponentKind]struct {
		nodes   int32
		onGrove bool
	}{
		v1alpha1.ComponentKindLeaderWorkerSet:       {nodes: 2},
		v1alpha1.ComponentKindPodClique:             {nodes: 1, onGrove: true},
		v1alpha1.ComponentKindPodCliqueScalingGroup: {nodes: 2, onGrove: true},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			cluster := shared
			if c.onGrove {
				cluster = need(t, grove)
			}
			w := newWorldOn(t, cluster)
			dgd := w.restful("g")
			if c.nodes > 1 {
				dgd = w.spanningRest("g", c.nodes)
			}
			dgd.Spec.Services["decode"].ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
			w.create(dgd)
			if got := w.ready("g").Status.Services["decode"].ComponentKind; got != kind {
				t.Fatalf("decode runs as %s", got)
			}
			for _, replicas := range []int32{2, 0, 1} {
				w.kubectl("scale", "dgdsa/g-decode", fmt.Sprintf("--replicas=%d", replicas))
				w.scaled("g", "decode", replicas, c.nodes)
			}
		})
	}
}

func TestAnAdapterThatScalesNothingSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.restful("g"))
	for name, c := range map[string]struct{ graph, service, reason string }{
		"no-graph":   {"other", "decode", v1alpha1.ReasonGraphNotFound},
		"no-service": {"g", "encode", v1alpha1.ReasonServiceNotFound},
		"disabled":   {"g", "decode", v1alpha1.ReasonAdapterDisabled},
	} {
		a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
		a.Namespace, a.Name, a.Spec.Replicas = w.namespace, name, 7
		a.Spec.DGDRef.Name, a.Spec.DGDRef.ServiceName = c.graph, c.service
		w.create(a)
		w.eventually("adapter "+name+" to say why", func(ctx context.Context) error {
			if err := w.cluster.Client.Get(ctx, w.key(name), a); err != nil {
				return err
			}
			if got := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionActive); got == nil || got.Status != metav1.ConditionFalse || got.Reason != c.reason {
				return fmt.Errorf("condition %v", got)
			}
			return nil
		})
	}
	w.ready("g")
	if n := w.count("g", "decode"); n != 1 {
		t.Errorf("%d pods of decode", n)
	}
}

func (w world) kubectl(args ...string) {
	w.Helper()
	var refused error
	w.eventually("an answer to kubectl "+args[0], func(ctx context.Context) error {
		said, err := w.cluster.Kubectl(ctx, nil, append([]string{"-n", w.namespace}, args...)...)
		if strings.Contains(said, "failed calling webhook") || strings.Contains(said, "connection refused") {
			return err // nobody has judged it
		}
		refused = err
		return nil
	})
	if refused != nil {
		w.Fatal(refused)
	}
}

// scaled waits until spec, status, adapter and pods of a service agree; a replica
// has a pod on each of its nodes.
func (w world) scaled(graphName, service string, want, nodes int32) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d replicas of %s", want, service), func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := w.cluster.Client.Get(ctx, w.key(graphName), dgd); err != nil {
			return err
		}
		adapter := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
		if err := w.cluster.Client.Get(ctx, w.key(graphName+"-"+service), adapter); err != nil {
			return err
		}
		pods := int32(0)
		for _, pod := range w.pods(ctx) {
			if pod.Labels[v1alpha1.LabelComponent] == service {
				pods++
			}
		}
		spec := dgd.Spec.Services[service].Replicas
		if spec == nil || *spec != want || dgd.Status.Services[service].Replicas != want || adapter.Status.Replicas != want || pods != want*nodes {
			return fmt.Errorf("spec %v, status %d, adapter %d, pods %d", spec, dgd.Status.Services[service].Replicas, adapter.Status.Replicas, pods)
		}
		for _, c := range adapter.Status.Conditions {
			if c.Type == v1alpha1.ConditionActive && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the adapter is not active")
	})
	w.ready(graphName)
}
