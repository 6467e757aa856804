package pod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func TestWhoLooksForWorkersKnowsWhatTheirNamespacesBeginWith(t *testing.T) {
	ofOne := graph.Component{Role: graph.RoleFrontend, Runtime: graph.Runtime{Generation: "12ab"}}
	frontend := &corev1.Container{Command: []string{"/bin/sh", "-c"}, Args: []string{"python3 -m dynamo.frontend --http-port 8000"}}
	prefix := []corev1.EnvVar{{Name: "DYN_NAMESPACE_PREFIX", Value: "ns-g"}}
	for name, c := range map[string]struct {
		contract  graph.Contract
		component graph.Component
		want      []corev1.EnvVar
	}{
		"a frontend":                         {graph.ContractV1, graph.Component{Role: graph.RoleFrontend}, prefix},
		"a frontend of a type of its author": {graph.ContractV1, graph.Component{Role: graph.RoleOther, Main: frontend}, prefix},
		"not one whose workers were taken over without a generation": {graph.ContractV1, graph.Component{Role: graph.RoleOther, Main: frontend, Runtime: graph.Runtime{Adopted: true}}, nil},
		"not a frontend of one generation":                           {graph.ContractV1, ofOne, nil},
		"not another program":                                        {graph.ContractV1, graph.Component{Role: graph.RoleOther, Main: &corev1.Container{}}, nil},
		"not a component that brings no container":                   {graph.ContractV1, graph.Component{Role: graph.RoleOther}, nil},
		"not under a contract that has no generation":                {graph.ContractSeed, graph.Component{Role: graph.RoleOther, Main: frontend}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.component.DynamoNamespace, c.component.Contract = "ns-g", c.contract
			if diff := cmp.Diff(c.want, generationEnv(c.component)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTheNamespaceThatAPodIsTold: where the runtime knows of generations, workers are told
// theirs beside it.
func TestTheNamespaceThatAPodIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		contract   graph.Contract
		role       graph.Role
		generation string
		want       map[string]string
	}{
		"a worker":                              {graph.ContractV1, graph.RoleWorker, "12ab", map[string]string{"DYN_NAMESPACE": "ns-g", "DYN_NAMESPACE_WORKER_SUFFIX": "12ab"}},
		"a frontend of all generations":         {graph.ContractV1, graph.RoleFrontend, "", map[string]string{"DYN_NAMESPACE": "ns-g", "DYN_NAMESPACE_PREFIX": "ns-g"}},
		"a frontend of one":                     {graph.ContractV1, graph.RoleFrontend, "12ab", map[string]string{"DYN_NAMESPACE": "ns-g-12ab"}},
		"a planner":                             {graph.ContractV1, graph.RolePlanner, "", map[string]string{"DYN_NAMESPACE": "ns-g"}},
		"a worker of an earlier runtime":        {graph.ContractSeed, graph.RoleWorker, "", map[string]string{"DYN_NAMESPACE": "ns-g"}},
		"a worker of an earlier runtime in one": {graph.ContractSeed, graph.RoleWorker, "12ab", map[string]string{"DYN_NAMESPACE": "ns-g-12ab"}},
		"its frontend":                          {graph.ContractSeed, graph.RoleFrontend, "12ab", map[string]string{"DYN_NAMESPACE": "ns-g-12ab"}},
	} {
		t.Run(name, func(t *testing.T) {
			of := graph.Component{Role: c.role, DynamoNamespace: "ns-g", Runtime: graph.Runtime{Contract: c.contract, Generation: c.generation, RuntimeNamespace: "ns-g"}}
			if c.generation != "" {
				of.RuntimeNamespace += "-" + c.generation
			}
			got := map[string]string{}
			for _, v := range identityEnv(of, MainContainer) {
				if strings.HasPrefix(v.Name, "DYN_NAMESPACE") {
					got[v.Name] = v.Value
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAFrontendOfALaterGenerationFinishesItsAnswers: almost to the end of its grace. What
// was made before there was anything to roll out stays as it is.
func TestAFrontendOfALaterGenerationFinishesItsAnswers(t *testing.T) {
	const name = "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"
	grace := func(n int64) *corev1.PodSpec { return &corev1.PodSpec{TerminationGracePeriodSeconds: &n} }
	later := graph.Runtime{Contract: graph.ContractV1, Generation: "12ab"}
	for rule, c := range map[string]struct {
		of   graph.Component
		want string
	}{
		"of a later generation":          {graph.Component{Role: graph.RoleFrontend, ObjectName: "g-f-12ab", Runtime: later}, "50"},
		"of one with plain names":        {graph.Component{Role: graph.RoleFrontend, ObjectName: "g-f", Runtime: later}, ""},
		"of all generations":             {graph.Component{Role: graph.RoleFrontend, ObjectName: "g-f-12ab", Runtime: graph.Runtime{Contract: graph.ContractV1}}, ""},
		"a worker":                       {graph.Component{Role: graph.RoleWorker, ObjectName: "g-f-12ab", Runtime: later}, ""},
		"with a grace of its own":        {graph.Component{Role: graph.RoleFrontend, ObjectName: "g-f-12ab", Runtime: later, Pod: grace(300)}, "290"},
		"with hardly any":                {graph.Component{Role: graph.RoleFrontend, ObjectName: "g-f-12ab", Runtime: later, Pod: grace(12)}, ""},
		"whose author has said it":       {graph.Component{Role: graph.RoleFrontend, ObjectName: "g-f-12ab", Runtime: later, Env: []corev1.EnvVar{{Name: name, Value: "7"}}}, "7"},
		"whose author has said it there": {graph.Component{Role: graph.RoleFrontend, ObjectName: "g-f-12ab", Runtime: later, Main: &corev1.Container{Env: []corev1.EnvVar{{Name: name, Value: "8"}}}}, "8"},
	} {
		t.Run(rule, func(t *testing.T) {
			c.of.Graph, c.of.Name = "g", "f"
			got := ""
			for _, v := range mainContainer(c.of, Platform{}).Env {
				if v.Name == name {
					got = v.Value
				}
			}
			if got != c.want {
				t.Errorf("it is told %q, want %q", got, c.want)
			}
		})
	}
}
