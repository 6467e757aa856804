package graphoverride

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// generated is a graph that a profiler found.
const generated = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: found, annotations: {nvidia.com/written-as: v1beta1}}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      envs: [{name: A, value: "1"}, {name: B, value: "2"}]
      extraPodSpec: {mainContainer: {image: f}}
    decode:
      componentType: worker
      subComponentType: decode
      replicas: 2
      extraPodSpec: {mainContainer: {image: w, args: [--model, m]}}
`

func read(t *testing.T, text string) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	g := &v1alpha1.DynamoGraphDeployment{}
	if err := yaml.UnmarshalStrict([]byte(text), g); err != nil {
		t.Fatal(err)
	}
	return g
}

func override(t *testing.T, text string) *runtime.RawExtension {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: raw}
}

func TestOverridesGoOverTheGraphInTheirOwnVersion(t *testing.T) {
	for name, test := range map[string]struct {
		over string
		want func(*v1alpha1.DynamoGraphDeployment)
	}{
		"a variable of v1beta1 is added beside the others": {
			`{apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, spec: {components: [{name: Frontend, podTemplate: {spec: {containers: [{name: main, env: [{name: B, value: "3"}, {name: C, value: "4"}]}]}}}]}}`,
			func(g *v1alpha1.DynamoGraphDeployment) {
				envs := g.Spec.Services["Frontend"].Envs
				envs[1].Value = "3"
				g.Spec.Services["Frontend"].Envs = slices.Concat(envs, read(t, `{spec: {services: {x: {envs: [{name: C, value: "4"}]}}}}`).Spec.Services["x"].Envs)
			},
		},
		"a variable of v1alpha1 too": {
			`{apiVersion: nvidia.com/v1alpha1, kind: DynamoGraphDeployment, spec: {services: {Frontend: {envs: [{name: A, value: "5"}]}}}}`,
			func(g *v1alpha1.DynamoGraphDeployment) { g.Spec.Services["Frontend"].Envs[0].Value = "5" },
		},
		"arguments of a worker are added in v1alpha1": {
			`{apiVersion: nvidia.com/v1alpha1, spec: {services: {decode: {extraPodSpec: {mainContainer: {args: [--more]}}}}}}`,
			func(g *v1alpha1.DynamoGraphDeployment) {
				g.Spec.Services["decode"].ExtraPodSpec.MainContainer.Args = []string{"--model", "m", "--more"}
			},
		},
		"and replaced in v1beta1": {
			`{apiVersion: nvidia.com/v1beta1, spec: {components: [{name: decode, replicas: 5, podTemplate: {spec: {containers: [{name: main, args: [--only]}]}}}]}}`,
			func(g *v1alpha1.DynamoGraphDeployment) {
				g.Spec.Services["decode"].Replicas = new(int32(5))
				g.Spec.Services["decode"].ExtraPodSpec.MainContainer.Args = []string{"--only"}
			},
		},
		"of metadata the labels and annotations count": {
			`{metadata: {name: mine, namespace: victim, finalizers: [x], labels: {team: a}, annotations: {note: b}}}`,
			func(g *v1alpha1.DynamoGraphDeployment) {
				g.Labels = map[string]string{"team": "a"}
				g.Annotations["note"] = "b"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Parse(override(t, test.over))
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.Apply(read(t, generated))
			if err != nil {
				t.Fatal(err)
			}
			want := read(t, generated)
			test.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverridesThatCannotBe(t *testing.T) {
	for name, test := range map[string]struct{ over, want string }{
		"a component that is not there":  {`{apiVersion: nvidia.com/v1beta1, spec: {components: [{name: evil}]}}`, `no component "evil"; it has Frontend, decode`},
		"a service that is not there":    {`{apiVersion: nvidia.com/v1alpha1, spec: {services: {evil: {}}}}`, `no service "evil"`},
		"null removes nothing":           {`{apiVersion: nvidia.com/v1beta1, spec: {components: [{name: Frontend, replicas: null}]}}`, "spec.components[0].replicas"},
		"a directive neither":            {`{apiVersion: nvidia.com/v1alpha1, spec: {services: {Frontend: {$patch: delete}}}}`, "spec.services.Frontend.$patch"},
		"a status":                       {`{apiVersion: nvidia.com/v1beta1, status: {state: successful}}`, "status"},
		"another kind":                   {`{apiVersion: v1, kind: Secret}`, "it is a Secret"},
		"another version":                {`{apiVersion: nvidia.com/v2, kind: DynamoGraphDeployment}`, "nvidia.com/v2"},
		"a field that nobody knows":      {`{apiVersion: nvidia.com/v1beta1, spec: {components: [{name: Frontend, nobody: 1}]}}`, "nobody"},
		"a field of the other version":   {`{apiVersion: nvidia.com/v1beta1, spec: {services: {Frontend: {}}}}`, "services"},
		"a value that is not of a field": {`{apiVersion: nvidia.com/v1beta1, spec: {components: [{name: Frontend, replicas: many}]}}`, "replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Parse(override(t, test.over))
			if err == nil {
				_, err = o.Apply(read(t, generated))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v, not %q", err, test.want)
			}
		})
	}
}
