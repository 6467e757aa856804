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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	// An autoscaler finds the adapter's scale.
	w.kubectl("autoscale", "dgdsa/quickstart-decode", "--min=1", "--max=3", "--cpu=50%")
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
	w.kubectl("delete", "hpa", "quickstart-decode")

	w.kubectl("scale", "dgdsa/quickstart-decode", "--replicas=0")
	w.scaled("quickstart", "decode", 0, 1)
	w.kubectl("scale", "dgdsa/quickstart-decode", "--replicas=1")
	w.scaled("quickstart", "decode", 1, 1)
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
