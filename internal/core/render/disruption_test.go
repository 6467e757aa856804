package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

func TestDisruptionBudgetsKeepTheFloorOfWhatServes(t *testing.T) {
	serves := func(name string, role graph.Role, replicas, nodes int32, unavailable string) graph.Component {
		c := graph.Component{Graph: "g", Namespace: "lab", Name: name, Role: role, ObjectName: "g-" + name, Replicas: replicas, Nodes: nodes}
		if unavailable != "" {
			c.Annotations = map[string]string{v1alpha1.AnnotationMaxUnavailable: unavailable}
		}
		return c
	}
	front := serves("front", graph.RoleFrontend, 2, 1, "1")
	prefill, decode := serves("prefill", graph.RolePrefill, 4, 1, ""), serves("decode", graph.RoleDecode, 2, 1, "")
	for name, c := range map[string]struct {
		services   []graph.Component
		serving    map[string]graph.Serving
		annotation string
		without    bool
		want       map[string]int
		among      []string
		others     bool
	}{
		"each service of a cell has its own": {
			services: []graph.Component{front, prefill, decode}, want: map[string]int{"g-front": 1, "g-prefill": 3, "g-decode": 2},
		},
		"the annotation turns them off": {services: []graph.Component{front, prefill, decode}, annotation: "false"},
		"the annotation turns them on":  {services: []graph.Component{front}, annotation: "true", without: true, want: map[string]int{"g-front": 1}},
		"without either there are none": {services: []graph.Component{front, prefill, decode}, without: true},
		"where one of a cell may be missing entirely, nothing is promised": {
			services: []graph.Component{prefill, serves("decode", graph.RoleDecode, 1, 1, "1")},
		},
		"what serves no requests has none": {services: []graph.Component{serves("planner", graph.RolePlanner, 1, 1, "")}},
		"what has no replicas has none":    {services: []graph.Component{serves("decode", graph.RoleDecode, 0, 1, "")}},
		"of groups of nodes as many pods may go as groups": {
			services: []graph.Component{serves("decode", graph.RoleDecode, 4, 2, "1")}, want: map[string]int{"g-decode": 7},
		},
		"while generations are exchanged, the desired number counts in those that are complete": {
			services: []graph.Component{serves("decode", graph.RoleDecode, 1, 1, "")},
			serving:  map[string]graph.Serving{"decode": {Desired: 4, Replicas: 5, Generations: []string{"aa", "bb"}}},
			want:     map[string]int{"g-decode": 3}, among: []string{"aa", "bb"},
		},
		"what is of no generation is all but the others": {
			services: []graph.Component{serves("decode", graph.RoleDecode, 1, 1, "")},
			serving:  map[string]graph.Serving{"decode": {Desired: 4, Replicas: 5, Generations: []string{"", "aa"}, Others: []string{"bb"}}},
			want:     map[string]int{"g-decode": 3}, among: []string{"bb"}, others: true,
		},
		"while groups of nodes are exchanged, a group more is one more that an eviction can take": {
			services: []graph.Component{serves("decode", graph.RoleDecode, 1, 2, "1")},
			serving:  map[string]graph.Serving{"decode": {Desired: 4, Replicas: 5, Generations: []string{"aa"}}},
			want:     map[string]int{"g-decode": 8}, among: []string{"aa"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{}
			if c.annotation != "" {
				dgd.Annotations = map[string]string{v1alpha1.AnnotationDisruptionBudget: c.annotation}
			}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{}
			for _, s := range c.services {
				dgd.Spec.Services[s.Name] = &v1alpha1.SharedSpec{}
			}
			g := &graph.Graph{Name: "g", Namespace: "lab", Components: c.services, Serving: c.serving}
			wanted, err := render.Graph(dgd, g, workload.ProviderComponent, render.Platform{DisruptionBudgets: !c.without})
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]int
			for _, w := range wanted {
				b, ok := w.Object.(*policyv1.PodDisruptionBudget)
				if !ok {
					continue
				}
				if got == nil {
					got = map[string]int{}
				}
				got[b.Name] = b.Spec.MinAvailable.IntValue()
				among := []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelComponent, Operator: metav1.LabelSelectorOpExists}}
				if c.among != nil {
					among = []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelGeneration, Operator: metav1.LabelSelectorOpIn, Values: c.among}}
				}
				if c.others {
					among[0].Operator = metav1.LabelSelectorOpNotIn
				}
				if d := cmp.Diff(among, b.Spec.Selector.MatchExpressions); d != "" {
					t.Errorf("%s selects otherwise (-want +got):\n%s", b.Name, d)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("least pods (-want +got):\n%s", d)
			}
		})
	}
}
