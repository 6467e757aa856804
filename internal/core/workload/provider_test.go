package workload

import (
	"maps"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestChoose(t *testing.T) {
	const enable, provider, choice = v1alpha1.AnnotationEnableGrove, v1alpha1.AnnotationWorkloadProvider, v1alpha1.AnnotationWorkloadChoice
	grove := snapshot.Capabilities{snapshot.APIGrove: true}
	cases := map[string]struct {
		annotations map[string]string
		have        snapshot.Capabilities
		running     Provider
		want        Provider
	}{
		"Grove where it is installed":                        {nil, grove, "", ProviderGrove},
		"components where it is not":                         {nil, nil, "", ProviderComponent},
		"the user can keep a graph off Grove":                {map[string]string{enable: "False"}, grove, "", ProviderComponent},
		"installing Grove later moves no graph":              {map[string]string{provider: "component", choice: ""}, grove, "", ProviderComponent},
		"a graph stays on Grove when its API is away":        {map[string]string{provider: "grove", choice: ""}, nil, "", ProviderGrove},
		"a graph of an earlier operator stays where it runs": {nil, grove, ProviderComponent, ProviderComponent},
		"a user who takes the refusal back moves the graph":  {map[string]string{provider: "component", choice: "false"}, grove, ProviderComponent, ProviderGrove},
		"a user who asks for Grove moves the graph":          {map[string]string{enable: "true", provider: "component", choice: ""}, grove, ProviderComponent, ProviderGrove},
		"a user who refuses Grove moves the graph":           {map[string]string{enable: "false", provider: "grove", choice: ""}, grove, ProviderGrove, ProviderComponent},
		"a record without the wish it was made under stands": {map[string]string{enable: "true", provider: "component"}, grove, "", ProviderComponent},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			got := Choose(c.annotations, c.have, c.running)
			if got != c.want {
				t.Fatalf("chose %s, want %s", got, c.want)
			}
			recorded := map[string]string{}
			maps.Copy(recorded, c.annotations)
			maps.Copy(recorded, Record(c.annotations, got))
			if again := Choose(recorded, snapshot.Capabilities{snapshot.APIGrove: true}, ""); again != got {
				t.Errorf("once recorded, %s is chosen", again)
			}
		})
	}
}
