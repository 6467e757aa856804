package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestGraphDeployment(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []string // type and path of each violation
	}{
		"an empty service is legal":                     {spec: `services: {a: {}}`},
		"a null service is an empty one":                {spec: `services: {a: null}`},
		"component types are free text":                 {spec: `services: {a: {componentType: main}}`},
		"a mount needs no entry in pvcs":                {spec: `services: {a: {volumeMounts: [{name: x, mountPoint: /x}]}}`},
		"shared memory without a size has the default":  {spec: `services: {a: {sharedMemory: {}}}`},
		"a graph has a service":                         {spec: `{}`, want: []string{"FieldValueRequired spec.services"}},
		"names that differ only in case collide":        {spec: `services: {a: {}, A: {}}`, want: []string{"FieldValueDuplicate spec.services[a]"}},
		"a name has to fit an object's name":            {spec: `services: {my_svc: {}}`, want: []string{"FieldValueInvalid spec.services[my_svc]"}},
		"replicas are not negative":                     {spec: `services: {a: {replicas: -1}}`, want: []string{"FieldValueInvalid spec.services[a].replicas"}},
		"an enabled ingress has a host":                 {spec: `services: {a: {ingress: {enabled: true}}}`, want: []string{"FieldValueRequired spec.services[a].ingress.host"}},
		"a mount has a path":                            {spec: `services: {a: {volumeMounts: [{name: x}]}}`, want: []string{"FieldValueRequired spec.services[a].volumeMounts[0].mountPoint"}},
		"a mount names a claim":                         {spec: `services: {a: {volumeMounts: [{name: "", mountPoint: /x}]}}`, want: []string{"FieldValueRequired spec.services[a].volumeMounts[0].name"}},
		"vLLM has a default place for its cache":        {spec: `{backendFramework: vllm, services: {a: {componentType: worker, volumeMounts: [{name: x, useAsCompilationCache: true}]}}}`},
		"other engines have none":                       {spec: `{backendFramework: sglang, services: {a: {componentType: worker, volumeMounts: [{name: x, useAsCompilationCache: true}]}}}`, want: []string{"FieldValueRequired spec.services[a].volumeMounts[0].mountPoint"}},
		"quantities can be read":                        {spec: `services: {a: {resources: {limits: {cpu: abc, custom: {x/y: "?"}}}}}`, want: []string{"FieldValueInvalid spec.services[a].resources.limits.cpu", "FieldValueInvalid spec.services[a].resources.limits.custom[x/y]"}},
		"two engines in one command need to be told":    {spec: `services: {a: {componentType: worker, extraPodSpec: {mainContainer: {args: ["python -m dynamo.vllm && python -m dynamo.sglang"]}}}}`, want: []string{"FieldValueInvalid spec.services[a].extraPodSpec.mainContainer.args"}},
		"the command and backendFramework agree":        {spec: `{backendFramework: vllm, services: {a: {componentType: worker, extraPodSpec: {mainContainer: {args: ["python -m dynamo.sglang"]}}}}}`, want: []string{"FieldValueInvalid spec.services[a].extraPodSpec.mainContainer.args"}},
		"a claim that is created is described":          {spec: `{services: {a: {}}, pvcs: [{name: x, create: true}]}`, want: []string{"FieldValueRequired spec.pvcs[0].size", "FieldValueRequired spec.pvcs[0].storageClass", "FieldValueRequired spec.pvcs[0].volumeAccessMode"}},
		"an order names each service once":              {spec: `{services: {a: {}, b: {}}, restart: {id: "1", strategy: {order: [a, a, c]}}}`, want: []string{"FieldValueInvalid spec.restart.strategy.order", "FieldValueDuplicate spec.restart.strategy.order[1]", "FieldValueNotFound spec.restart.strategy.order[2]"}},
		"a parallel restart has no order":               {spec: `{services: {a: {}}, restart: {id: "1", strategy: {type: Parallel, order: [a]}}}`, want: []string{"FieldValueForbidden spec.restart.strategy.order"}},
		"an endpoint picker has a configuration":        {spec: `services: {a: {componentType: epp}}`, want: []string{"FieldValueRequired spec.services[a].eppConfig"}},
		"there is one endpoint picker, on one node":     {spec: `services: {a: {componentType: epp, replicas: 2, multinode: {nodeCount: 2}, eppConfig: {config: {}}}, b: {componentType: epp, eppConfig: {config: {}}}}`, want: []string{"FieldValueForbidden spec.services", "FieldValueForbidden spec.services[a].multinode", "FieldValueInvalid spec.services[a].replicas"}},
		"a discovery backend is one of two":             {spec: `services: {a: {annotations: {nvidia.com/dynamo-discovery-backend: dns}}}`, want: []string{"FieldValueNotSupported spec.services[a].annotations[nvidia.com/dynamo-discovery-backend]"}},
		"all violations are told at once, in one order": {spec: `services: {b: {replicas: -1}, a: {replicas: -1}}`, want: []string{"FieldValueInvalid spec.services[a].replicas", "FieldValueInvalid spec.services[b].replicas"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{}
			if err := yaml.UnmarshalStrict([]byte("spec:\n  "+strings.TrimSpace(c.spec)+"\n"), dgd); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, summary(GraphDeployment(dgd))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func summary(errs field.ErrorList) []string {
	var lines []string
	for _, e := range errs {
		lines = append(lines, string(e.Type)+" "+e.Field)
	}
	return lines
}
