package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/render"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/manifest"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/inplace"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// service is what runs a service of a graph, as the operator renders it.
type service struct {
	component graph.Component
	kind      string
	// templates is what its pods are made from, as text to compare.
	templates string
	strategy  inplace.Strategy
	// minReady is how many seconds a pod must stay ready to count.
	minReady int
	// onDelete leaves pods as they are until somebody deletes them.
	onDelete bool
}

func (s service) gpus() int { return s.component.Resources.GPUs * int(max(1, s.component.Nodes)) }

// namespace is the Dynamo namespace in which its pods register.
func (s service) namespace() string {
	return cmp.Or(s.component.RuntimeNamespace, s.component.DynamoNamespace)
}

func (s service) replicas() int { return int(s.component.Replicas) }

// services renders a graph and finds what runs each of its services. Those with a
// number in scale have that many replicas, whatever the graph says, and all of them the
// mark of a restart, if there is one.
func services(r render.Renderer, dgd *v1alpha1.DynamoGraphDeployment, scale map[string]int32, restart string) (map[string]service, *graph.Graph, error) {
	g, err := graph.FromGraphDeployment(dgd, r.Platform.Defaults)
	if err != nil {
		return nil, nil, err
	}
	g = r.Paired(dgd, g).Scaled(scale)
	all, kinds, marks := map[string]service{}, scheme.New(), map[string]string{}
	for _, c := range g.Components {
		all[c.Name], marks[c.Name] = service{component: c}, restart
	}
	err = r.Graph(dgd, g.WithMarks(marks), func(owner graph.Object, of *graph.Graph, wanted []graph.Desired) error {
		for _, w := range wanted {
			fields, err := manifest.Of(w, owner, kinds)
			if err != nil {
				return err
			}
			if err := read(all, of, fields); err != nil {
				return fmt.Errorf("%s %s: %w", fields["kind"], w.GetName(), err)
			}
		}
		return nil
	})
	return all, g, err
}

// read takes what an object says about the pods of services.
func read(all map[string]service, g *graph.Graph, object map[string]any) error {
	switch kind := fmt.Sprint(object["kind"]); kind {
	case string(workload.KindDeployment):
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &d); err != nil {
			return err
		}
		name := g.Components[0].Name
		s := all[name]
		s.minReady = int(d.Spec.MinReadySeconds)
		all[name] = s
		return note(all, name, kind, rolling(d.Spec.Strategy, g.Components[0].Replicas), object, "spec", "template")
	case string(workload.KindLeaderWorkerSet):
		name := g.Components[0].Name
		if all[name].kind != "" {
			return nil // one of several alike
		}
		strategy := inplace.Strategy{Unavailable: 1, Exchange: true, Recreate: g.Components[0].Recreated()}
		return note(all, name, kind, strategy, object, "spec", "leaderWorkerTemplate")
	case "PodCliqueSet":
		return cliques(all, g, object)
	}
	return nil
}

// cliques reads the pods of a set that runs a whole graph.
func cliques(all map[string]service, g *graph.Graph, set map[string]any) error {
	list, _, err := unstructured.NestedSlice(set, "spec", "template", "cliques")
	if err != nil {
		return err
	}
	templates := map[string][]any{}
	for _, item := range list {
		clique, _ := item.(map[string]any)
		name, _, err := unstructured.NestedString(clique, "labels", v1alpha1.LabelComponent)
		if err != nil {
			return err
		}
		// How many there are is scaled, and replaces nothing.
		unstructured.RemoveNestedField(clique, "spec", "replicas")
		unstructured.RemoveNestedField(clique, "spec", "minAvailable")
		templates[name] = append(templates[name], clique)
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if err := note(all, name, "PodCliqueSet", inplace.Strategy{Unavailable: 1}, map[string]any{"cliques": templates[name]}, "cliques"); err != nil {
			return err
		}
		s := all[name]
		s.onDelete = g.UpdateStrategy == "OnDelete"
		all[name] = s
	}
	return nil
}

// note keeps what runs a service; at is where its pods are described.
func note(all map[string]service, name, kind string, strategy inplace.Strategy, object map[string]any, at ...string) error {
	template, _, err := unstructured.NestedFieldNoCopy(object, at...)
	if err != nil {
		return err
	}
	text, err := json.Marshal(template)
	if err != nil {
		return err
	}
	s := all[name]
	s.kind, s.templates, s.strategy = kind, string(text), strategy
	all[name] = s
	return nil
}

// rolling is a Deployment's strategy in pods, as its controller reads it: a surge
// rounds up, what may be missing rounds down, and if both come to nothing one may be.
func rolling(s appsv1.DeploymentStrategy, replicas int32) inplace.Strategy {
	if s.Type == appsv1.RecreateDeploymentStrategyType || s.RollingUpdate == nil {
		return inplace.Strategy{Recreate: s.Type == appsv1.RecreateDeploymentStrategyType, Surge: 1}
	}
	pods := func(of *intstr.IntOrString, up bool) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(of, int(replicas), up)
		if err != nil {
			return 0 // validation refuses what is no number
		}
		return n
	}
	r := inplace.Strategy{Surge: pods(s.RollingUpdate.MaxSurge, true), Unavailable: pods(s.RollingUpdate.MaxUnavailable, false)}
	if r.Surge == 0 && r.Unavailable == 0 {
		r.Unavailable = 1
	}
	return r
}
