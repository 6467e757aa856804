package graph

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestFrontendsFindTheWorkersOfALongerName: a prefix ends nowhere, so that the frontends
// of one graph may find the workers of another.
func TestFrontendsFindTheWorkersOfALongerName(t *testing.T) {
	const services = `{services: {f: {componentType: frontend}, w: {componentType: worker}}}`
	for rule, c := range map[string]struct {
		name, spec, annotation, other, otherSpec string
		contract                                 Contract
		want                                     bool
	}{
		"a name that goes on":                    {name: "agg", other: "agg-router", want: true},
		"whatever it goes on with":               {name: "agg", other: "aggregated", want: true},
		"dots are hyphens":                       {name: "agg.v1", other: "agg-v1-router", want: true},
		"an endpoint picker":                     {name: "agg", other: "agg-router", spec: `{services: {e: {componentType: epp}, w: {componentType: worker}}}`, want: true},
		"a frontend of a type of its author":     {name: "agg", other: "agg-router", spec: `{services: {f: {componentType: main, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.frontend]}}}}}`, want: true},
		"not a shorter name":                     {name: "agg-router", other: "agg"},
		"not another name":                       {name: "agg", other: "disagg"},
		"not itself":                             {name: "agg", other: "agg"},
		"not before 1.x":                         {name: "agg", other: "agg-router", contract: ContractSeed},
		"not without a frontend":                 {name: "agg", other: "agg-router", spec: `{services: {w: {componentType: worker}}}`},
		"not a graph without workers":            {name: "agg", other: "agg-router", otherSpec: `{services: {f: {componentType: frontend}}}`},
		"not workers that are everybody's":       {name: "agg", other: "agg-router", otherSpec: `{services: {w: {componentType: worker, globalDynamoNamespace: true}}}`},
		"not for a frontend that is everybody's": {name: "agg", other: "agg-router", spec: `{services: {f: {componentType: frontend, globalDynamoNamespace: true}}}`},
		"not workers that are found by etcd":     {name: "agg", other: "agg-router", otherSpec: `{services: {w: {componentType: worker, annotations: {nvidia.com/dynamo-discovery-backend: etcd}}}}`},
		"not for frontends of generations":       {name: "agg", other: "agg-router", annotation: "paired"},
	} {
		t.Run(rule, func(t *testing.T) {
			read := func(name, spec, isolation string) *Graph {
				if spec == "" {
					spec = services
				}
				dgd := readAlpha(t, spec)
				dgd.Name = name
				if isolation != "" {
					dgd.Annotations = map[string]string{v1alpha1.AnnotationRolloutIsolation: isolation}
				}
				contract := c.contract
				if contract == "" {
					contract = ContractV1
				}
				g, err := FromGraphDeployment(dgd, Defaults{Discovery: DiscoveryKubernetes, Contract: ContractRules{Forced: contract}})
				if err != nil {
					t.Fatal(err)
				}
				if isolation != "" {
					g = g.Pair(dgd.Annotations, Running{})
				}
				return g
			}
			if got := read(c.name, c.spec, c.annotation).FindsWorkersOf(read(c.other, c.otherSpec, "")); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	g, other := Graph{Name: "agg", Namespace: "lab"}, Graph{Name: "agg-router", Namespace: "elsewhere"}
	g.Components = []Component{{Role: RoleFrontend, DynamoNamespace: "lab-agg", Runtime: Runtime{Contract: ContractV1}}}
	other.Components = []Component{{Role: RoleWorker, DynamoNamespace: "lab-agg-router"}}
	if g.FindsWorkersOf(&other) {
		t.Error("workers of another Kubernetes namespace are found")
	}
}
