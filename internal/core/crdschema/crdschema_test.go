package crdschema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"k8s.io/apimachinery/pkg/util/json"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func graphSchema(t *testing.T) Schema {
	t.Helper()
	s, known, err := Of("DynamoGraphDeployment")
	if err != nil || !known {
		t.Fatalf("known %v: %v", known, err)
	}
	return s
}

func TestDefault(t *testing.T) {
	cases := map[string]struct{ given, want string }{
		"a field that is left out gets its default": {
			`spec: {services: {a: {scalingAdapter: {}}}}`,
			`spec: {services: {a: {scalingAdapter: {enabled: false}}}}`,
		},
		"a default goes into the items of a list": {
			`spec: {services: {a: {volumeMounts: [{name: x, mountPoint: /x}]}}}`,
			`spec: {services: {a: {volumeMounts: [{name: x, mountPoint: /x, useAsCompilationCache: false}]}}}`,
		},
		"ports are of TCP": {
			`spec: {services: {a: {extraPodSpec: {mainContainer: {ports: [{containerPort: 1}]}}}}}`,
			`spec: {services: {a: {extraPodSpec: {mainContainer: {ports: [{containerPort: 1, protocol: TCP}]}}}}}`,
		},
		"a null where none is known counts as left out": {
			`spec: {services: {a: {multinode: {nodeCount: null}}}}`,
			`spec: {services: {a: {multinode: {nodeCount: 2}}}}`,
		},
		"a null that the schema knows is kept": {
			`spec: {services: {a: {multinode: null}}}`,
			`spec: {services: {a: {multinode: null}}}`,
		},
		"what is set is kept": {
			`spec: {services: {a: {multinode: {nodeCount: 3}}}}`,
			`spec: {services: {a: {multinode: {nodeCount: 3}}}}`,
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			object := parse(t, c.given)
			graphSchema(t).Default(object)
			if diff := cmp.Diff(parse(t, c.want), object); diff != "" {
				t.Errorf("defaulted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		given string
		want  []string
	}{
		"a graph in order has no problem":         {`{apiVersion: v, kind: k, metadata: {name: x}, spec: {services: {a: {replicas: 1, sharedMemory: {size: 1Gi}}}}}`, nil},
		"unknown fields are found by path":        {`spec: {services: {a: {extraPodSpec: {tolerations: [{keys: x}]}}}}`, []string{"FieldValueForbidden spec.services[a].extraPodSpec.tolerations[0].keys"}},
		"a close name is offered":                 {`spec: {services: {a: {env: []}}}`, []string{"FieldValueForbidden spec.services[a].env"}},
		"a type that does not fit is found":       {`spec: {services: {a: {replicas: two, envs: {}}}}`, []string{"FieldValueInvalid spec.services[a].envs", "FieldValueInvalid spec.services[a].replicas"}},
		"a quantity that cannot be read is found": {`spec: {services: {}, pvcs: [{name: x, size: many}]}`, []string{"FieldValueInvalid spec.pvcs[0].size"}},
		"a required field is missed":              {`spec: {services: {a: {volumeMounts: [{}]}}}`, []string{"FieldValueRequired spec.services[a].volumeMounts[0].name"}},
		"a required field with a default is not":  {`spec: {services: {a: {multinode: {}}}}`, nil},
		"bounds hold":                             {`spec: {services: {a: {replicas: -1, multinode: {nodeCount: 1}}}}`, []string{"FieldValueInvalid spec.services[a].multinode.nodeCount", "FieldValueInvalid spec.services[a].replicas"}},
		"choices are named":                       {`spec: {services: {}, backendFramework: llamacpp}`, []string{"FieldValueNotSupported spec.backendFramework"}},
		"free form is free":                       {`spec: {services: {a: {eppConfig: {config: {plugins: [{type: x, parameters: {a: 1}}], schedulingProfiles: []}}}}}`, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, e := range graphSchema(t).Check(parse(t, c.given)) {
				got = append(got, string(e.Type)+" "+e.Field)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	cases := map[string]struct {
		given string
		want  []string
	}{
		"a graph in order breaks none":  {`spec: {services: {a: {replicas: 1}}}`, nil},
		"a claim needs a size":          {`spec: {services: {}, pvcs: [{name: x, create: true, storageClass: s, volumeAccessMode: ReadWriteOnce}]}`, []string{"spec.pvcs[0].size: Required value: a claim to create needs a size"}},
		"a rule within a map":           {`spec: {services: {a: {ingress: {enabled: true}}}}`, []string{"spec.services[a].ingress.host: Required value: an enabled ingress needs a host"}},
		"a rule that defaults decide":   {`spec: {services: {a: {volumeMounts: [{name: x}]}}}`, []string{"spec.services[a].volumeMounts[0].mountPoint: Required value: a mount needs a mountPoint unless it is the compilation cache"}},
		"a rule about a change is kept": {`spec: {services: {}, backendFramework: vllm}`, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			object := parse(t, c.given)
			schema := graphSchema(t)
			schema.Default(object)
			var got []string
			for _, e := range schema.Rules(object) {
				got = append(got, e.Field+": "+e.Type.String()+": "+e.Detail)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAGangNeedsNoMoreReplicasThanThereAre, except that an adapter's number, which is
// mirrored into the graph, must not have the next apply of its manifest refused.
func TestAGangNeedsNoMoreReplicasThanThereAre(t *testing.T) {
	schema, known, err := OfVersion("DynamoGraphDeployment", "v1beta1")
	if err != nil || !known {
		t.Fatalf("known %v: %v", known, err)
	}
	for rule, c := range map[string]struct {
		given string
		want  []string
	}{
		"as many as there are":                             {`{name: a, replicas: 2, minAvailable: 2}`, nil},
		"more than there are":                              {`{name: a, replicas: 1, minAvailable: 2}`, []string{"spec.components[0].minAvailable: minAvailable cannot be more than replicas"}},
		"more than the one that there is without a number": {`{name: a, minAvailable: 2}`, []string{"spec.components[0].minAvailable: minAvailable cannot be more than replicas"}},
		"one, without a number":                            {`{name: a, minAvailable: 1}`, nil},
		"an adapter's number, not told yet":                {`{name: a, minAvailable: 2, scalingAdapter: {}}`, nil},
		"none at all":                                      {`{name: a, replicas: 0, minAvailable: 2}`, nil},
		"an adapter's number":                              {`{name: a, replicas: 1, minAvailable: 2, scalingAdapter: {}}`, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, e := range schema.Rules(parse(t, "spec: {components: ["+c.given+"]}")) {
				got = append(got, e.Field+": "+e.Detail)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKindOfOthersIsNotKnown(t *testing.T) {
	if _, known, err := Of("Deployment"); known || err != nil {
		t.Errorf("known %v, %v", known, err)
	}
}
