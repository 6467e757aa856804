package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// chat is a graph of a frontend, a worker and a planner, under a contract.
func chat(t *testing.T, contract Contract, annotations map[string]string, running Running) *Graph {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat", Annotations: annotations}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
		"Frontend": {ComponentType: v1alpha1.ComponentTypeFrontend}, "Planner": {ComponentType: v1alpha1.ComponentTypePlanner}, "Worker": {ComponentType: v1alpha1.ComponentTypeWorker},
	}
	g, err := FromGraphDeployment(dgd, Defaults{Contract: ContractRules{Forced: contract}, Running: running})
	if err != nil {
		t.Fatal(err)
	}
	return g.Pair(annotations, running)
}

func TestFrontendsOfAPairedGraphAreOfTheGenerationOfItsWorkers(t *testing.T) {
	recorded := map[string]string{v1alpha1.AnnotationGeneration: "12ab"}
	named := map[string]string{"Frontend": "chat-frontend-12ab", "Worker": "chat-worker-12ab"}
	type place struct{ Generation, Object, Service, Namespace string }
	planner := place{"", "chat-planner", "chat-planner", "lab-chat"}
	plain := map[string]place{
		"Frontend": {"", "chat-frontend", "chat-frontend", "lab-chat"}, "Worker": {"", "chat-worker", "chat-worker", "lab-chat"}, "Planner": planner,
	}
	later := map[string]place{
		"Frontend": {"12ab", "chat-frontend-12ab", "chat-frontend", "lab-chat-12ab"}, "Worker": {"12ab", "chat-worker-12ab", "chat-worker-12ab", "lab-chat-12ab"}, "Planner": planner,
	}
	for rule, c := range map[string]struct {
		contract    Contract
		annotations map[string]string
		running     Running
		want        map[string]place
	}{
		"the first under 1.x has an id and plain names": {ContractV1, recorded, Running{}, map[string]place{
			"Frontend": {"12ab", "chat-frontend", "chat-frontend", "lab-chat-12ab"}, "Worker": {"12ab", "chat-worker", "chat-worker", "lab-chat-12ab"}, "Planner": planner,
		}},
		"the first under the seed's contract has none":                    {ContractSeed, nil, Running{}, plain},
		"a later one is named after it, but for the Service of frontends": {ContractV1, recorded, Running{Generation: "12ab", Names: named, Paired: true}, later},
		"as under the seed's contract":                                    {ContractSeed, recorded, Running{Generation: "12ab", Names: named, Paired: true}, later},
		"there, without a record, it is read off the workers":             {ContractSeed, nil, Running{Contract: ContractSeed, Generation: "12ab", Names: named, Paired: true}, later},
		"unless some have none: those were there first":                   {ContractSeed, nil, Running{Contract: ContractSeed, Generation: "12ab", Plain: true, Paired: true}, plain},
	} {
		t.Run(rule, func(t *testing.T) {
			got := map[string]place{}
			for _, c := range chat(t, c.contract, c.annotations, c.running).Components {
				got[c.Name] = place{c.Generation, c.ObjectName, c.ServiceName, c.RuntimeNamespace}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBePaired(t *testing.T) {
	of := func(roles ...Role) []Component {
		var all []Component
		for _, r := range roles {
			all = append(all, Component{Role: r, DynamoNamespace: "lab-chat"})
		}
		return all
	}
	global := of(RoleFrontend, RoleWorker)
	global[1].DynamoNamespace = globalNamespace
	for name, c := range map[string]struct {
		components []Component
		want       string
	}{
		"a frontend and workers can": {of(RoleFrontend, RolePrefill, RoleDecode, RolePlanner), ""},
		"without a frontend":         {of(RoleWorker), "the graph has no frontend"},
		"without workers":            {of(RoleFrontend), "the graph has no workers"},
		"with an endpoint picker":    {of(RoleFrontend, RoleWorker, RoleEPP), "an endpoint picker looks for the workers of all generations"},
		"in everybody's namespace":   {global, "frontends in the global Dynamo namespace see all others"},
	} {
		if got := (&Graph{Components: c.components}).Unpairable(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
