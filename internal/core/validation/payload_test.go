package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// TestAPayloadThatDoesNotFitIsToldAndAdmitted: whatever stands in the annotations of a
// conversion, the object is what its fields say, and who writes it learns of that.
func TestAPayloadThatDoesNotFitIsToldAndAdmitted(t *testing.T) {
	const none = "is ignored; it is not what a conversion writes, which is JSON with version 1 and a spec"
	const contradicts = "is ignored where it contradicts the fields of the object, in v1beta1 "
	const dgd, dcd, dgdr = "metadata.annotations[nvidia.com/dgd-spec]: ", "metadata.annotations[nvidia.com/dcd-spec]: ", "metadata.annotations[nvidia.com/dgdr-spec]: "
	service := `{extraPodSpec: {mainContainer: {image: i}}, volumeMounts: [{name: v, mountPoint: /v}]}`
	fits := `{"podTemplate":{"spec":{"containers":[{"name":"main","volumeMounts":[{"name":"v","mountPath":"/v","subPath":"s"}]}]}}`
	other := `{"replicas":99,"podTemplate":{"spec":{"serviceAccountName":"admin","containers":[{"name":"main"},{"name":"evil"}]}}`
	cases := map[string]struct {
		object graph.Object
		spec   string
		key    string
		text   string
		want   []string
	}{
		"a payload that fits a graph":       {&v1alpha1.DynamoGraphDeployment{}, `{services: {w: ` + service + `}}`, v1alpha1.AnnotationGraphPayload, `{"version":1,"spec":{"components":[` + fits + `,"name":"w"}]}}`, nil},
		"one that is no JSON":               {&v1alpha1.DynamoGraphDeployment{}, `{services: {w: ` + service + `}}`, v1alpha1.AnnotationGraphPayload, `{`, []string{dgd + none}},
		"one of another version":            {&v1alpha1.DynamoGraphDeployment{}, `{services: {w: ` + service + `}}`, v1alpha1.AnnotationGraphPayload, `{"version":2,"spec":{}}`, []string{dgd + none}},
		"one of another type":               {&v1alpha1.DynamoGraphDeployment{}, `{services: {w: ` + service + `}}`, v1alpha1.AnnotationGraphPayload, `{"version":1,"spec":[]}`, []string{dgd + none}},
		"one that shows another graph":      {&v1alpha1.DynamoGraphDeployment{}, `{services: {w: ` + service + `}}`, v1alpha1.AnnotationGraphPayload, `{"version":1,"spec":{"components":[` + other + `,"name":"w"}]}}`, []string{dgd + contradicts + "spec.components[w].podTemplate.spec.containers[evil], spec.components[w].podTemplate.spec.serviceAccountName, spec.components[w].replicas"}},
		"one about a service that is gone":  {&v1alpha1.DynamoGraphDeployment{}, `{services: {w: ` + service + `}}`, v1alpha1.AnnotationGraphPayload, `{"version":1,"spec":{"components":[` + other + `,"name":"x"}]}}`, nil},
		"a payload that fits a component":   {&v1alpha1.DynamoComponentDeployment{}, service, v1alpha1.AnnotationComponentPayload, `{"version":1,"spec":` + fits + `}}`, nil},
		"one that is no JSON, of one":       {&v1alpha1.DynamoComponentDeployment{}, service, v1alpha1.AnnotationComponentPayload, `?`, []string{dcd + none}},
		"one that shows another":            {&v1alpha1.DynamoComponentDeployment{}, service, v1alpha1.AnnotationComponentPayload, `{"version":1,"spec":` + other + `}}`, []string{dcd + contradicts + "spec.podTemplate.spec.containers[evil], spec.podTemplate.spec.serviceAccountName, spec.replicas"}},
		"a payload that fits a request":     {&v1alpha1.DynamoGraphDeploymentRequest{}, `{profilingConfig: {config: {}}}`, v1alpha1.AnnotationRequestPayload, `{"version":1,"spec":{"hardware":{"gpuSku":"l40"}}}`, nil},
		"one that is no JSON, of a request": {&v1alpha1.DynamoGraphDeploymentRequest{}, `{profilingConfig: {config: {}}}`, v1alpha1.AnnotationRequestPayload, `"`, []string{dgdr + none}},
		"overrides in one":                  {&v1alpha1.DynamoGraphDeploymentRequest{}, `{profilingConfig: {config: {}}}`, v1alpha1.AnnotationRequestPayload, `{"version":1,"spec":{"overrides":{"dgd":{"kind":"evil"}}}}`, []string{dgdr + contradicts + "spec.overrides.dgd.kind"}},
		"a payload of another kind":         {&v1alpha1.DynamoGraphDeployment{}, `{services: {w: ` + service + `}}`, v1alpha1.AnnotationRequestPayload, `?`, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			object := c.object.DeepCopyObject().(graph.Object)
			if err := yaml.UnmarshalStrict([]byte("metadata: {name: chat, namespace: lab}\nspec: "+c.spec), object); err != nil {
				t.Fatal(err)
			}
			before := Create(object, Scope{})
			object.SetAnnotations(map[string]string{c.key: c.text})
			v := Create(object, Scope{})
			if diff := cmp.Diff(summary(before.Problems), summary(v.Problems)); diff != "" {
				t.Errorf("it decides about admission (-without +with):\n%s", diff)
			}
			if diff := cmp.Diff(append(before.Warnings, c.want...), v.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
