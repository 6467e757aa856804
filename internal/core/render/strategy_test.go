package render_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/lws"
)

// TestWhatTunesReplacementHasAnEffectOrAWarning asks, for each annotation by which a
// user can tune how pods are replaced, whether it changes what is made or how it is
// updated: if and only if it does not, the user is warned at admission. RollingUpdate is
// what happens without it wherever it means something.
func TestWhatTunesReplacementHasAnEffectOrAWarning(t *testing.T) {
	recreate := map[string]string{v1alpha1.AnnotationDeploymentStrategy: string(appsv1.RecreateDeploymentStrategyType)}
	orchestrators := map[string]struct {
		nodes    int32
		provider workload.Provider
		beside   map[string]string
		// generations has workers come in those.
		generations bool
	}{
		"Deployment":                       {nodes: 1, provider: workload.ProviderComponent},
		"Deployment that is recreated":     {nodes: 1, provider: workload.ProviderComponent, beside: recreate},
		"groups of nodes":                  {nodes: 2, provider: workload.ProviderComponent},
		"groups of nodes, recreated":       {nodes: 2, provider: workload.ProviderComponent, beside: recreate},
		"Grove":                            {nodes: 1, provider: workload.ProviderGrove},
		"scaling group of Grove":           {nodes: 2, provider: workload.ProviderGrove},
		"Grove with a strategy elsewhere":  {nodes: 1, provider: workload.ProviderGrove, beside: recreate},
		"groups of nodes, in generations":  {nodes: 2, provider: workload.ProviderComponent, generations: true},
		"generations of groups, recreated": {nodes: 2, provider: workload.ProviderComponent, generations: true, beside: recreate},
		"Grove, in generations":            {nodes: 1, provider: workload.ProviderGrove, generations: true},
		"generations of scaling groups":    {nodes: 2, provider: workload.ProviderGrove, generations: true},
		"generations on Grove, recreated":  {nodes: 1, provider: workload.ProviderGrove, generations: true, beside: recreate},
	}
	values := map[string]string{
		v1alpha1.AnnotationDeploymentStrategy: string(appsv1.RecreateDeploymentStrategyType),
		v1alpha1.AnnotationMaxSurge:           "3",
		v1alpha1.AnnotationMaxUnavailable:     "3",
		v1alpha1.AnnotationMinReadySeconds:    "30",
	}
	for name, o := range orchestrators {
		for key, value := range values {
			for _, place := range []string{"annotations", "extraPodMetadata"} {
				if o.beside[key] != "" {
					continue
				}
				t.Run(fmt.Sprintf("%s of %s on %s", key, place, name), func(t *testing.T) {
					without, with := tuned(o.nodes, o.beside), tuned(o.nodes, o.beside)
					service := with.Spec.Services["w"]
					if place == "annotations" {
						service.Annotations = map[string]string{key: value}
						maps.Copy(service.Annotations, o.beside)
					} else {
						service.ExtraPodMetadata = &v1alpha1.ExtraPodMetadata{Annotations: map[string]string{key: value}}
					}
					scope := validation.Scope{InPlace: !o.generations, Contract: graph.ContractRules{Forced: graph.ContractV1}, Orchestrate: func(map[string]string) validation.Orchestration {
						return validation.Orchestration{Provider: o.provider}
					}}
					warned := false
					for _, w := range validation.Create(with, scope).Warnings {
						warned = warned || strings.Contains(w, key) && strings.Contains(w, ": has no effect")
					}
					effective := !reflect.DeepEqual(replaced(t, without, o.provider), replaced(t, with, o.provider))
					if o.generations {
						effective = exchanged(t, without) != exchanged(t, with)
					}
					if effective == warned {
						t.Errorf("effective %v, warned %v", effective, warned)
					}
				})
			}
		}
	}
}

// tuned is a graph of one service with annotations.
func tuned(nodes int32, annotations map[string]string) *v1alpha1.DynamoGraphDeployment {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat"}}
	service := &v1alpha1.SharedSpec{ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(2)), Annotations: annotations}
	if nodes > 1 {
		service.Multinode = &v1alpha1.Multinode{NodeCount: nodes}
		service.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"w": service}
	return dgd
}

// exchanged is all that decides how a generation of the service is replaced by another.
func exchanged(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment) string {
	t.Helper()
	g, err := graph.FromGraphDeployment(dgd, platform.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	surge, unavailable := world.Tolerance(g.Components[0])
	return fmt.Sprint(surge, unavailable, world.MinReady(g.Components[0]))
}

// replaced is all that decides how pods of a graph are replaced: the specs of what is
// made, and when groups of nodes that serve take a change.
func replaced(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, provider workload.Provider) []any {
	t.Helper()
	if provider == workload.ProviderGrove {
		top, err := renderGraph(dgd, provider)
		if err != nil {
			t.Fatal(err)
		}
		return specs(t, top.wanted)
	}
	_, below, err := renderBoth(dgd)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, l := range below {
		g, err := graph.FromComponentDeployment(l.owner.(*v1alpha1.DynamoComponentDeployment), platform.Defaults)
		if err != nil {
			t.Fatal(err)
		}
		var serving snapshot.Snapshot
		for i, w := range l.wanted {
			if set, ok := w.Object.(*lwsv1.LeaderWorkerSet); ok {
				live := set.DeepCopy()
				live.Spec.LeaderWorkerTemplate.Size = new(99 + int32(i))
				live.Status = lwsv1.LeaderWorkerSetStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, Conditions: []metav1.Condition{
					{Type: string(lwsv1.LeaderWorkerSetAvailable), Status: metav1.ConditionTrue},
				}}
				serving.Owned = append(serving.Owned, live)
			}
		}
		for _, w := range lws.Turns(g.Components[0], l.wanted, serving) {
			all = append(all, w.UpdatePolicy)
		}
		all = append(all, specs(t, l.wanted)...)
	}
	return all
}

// specs are the specs of objects without the user's annotations, which stand on all.
func specs(t *testing.T, wanted []graph.Desired) []any {
	t.Helper()
	var all []any
	for _, fields := range manifests(t, level{&v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat"}}, wanted}) {
		all = append(all, withoutAnnotations(fields["spec"]))
	}
	return all
}

func withoutAnnotations(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if key == "annotations" {
				delete(v, key)
				continue
			}
			v[key] = withoutAnnotations(below)
		}
	case []any:
		for i := range v {
			v[i] = withoutAnnotations(v[i])
		}
	}
	return value
}
