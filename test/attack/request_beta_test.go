package attack

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/joboverride"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
)

// betaRequest asks, in v1beta1, for a graph that is found by estimation, as a
// converter stores it.
func betaRequest(ns, name, more string) *unstructured.Unstructured {
	text := `{apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeploymentRequest, metadata: {name: ` + name + `, namespace: ` + ns + `},
		spec: {model: Qwen/Qwen3-0.6B, backend: vllm, autoApply: true, searchStrategy: rapid, hardware: {gpuSku: h200_sxm, numGpusPerNode: 8, totalGpus: 2},
			features: {mocker: {enabled: true}}` + more + `}}`
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err) // a literal of a test
	}
	stored, err := conversion.Convert(raw, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		panic(err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(stored.JSON, o); err != nil {
		panic(err)
	}
	delete(o.Object, "status")
	return o
}

// namedLikeIt gives the graph of request r its name.
const namedLikeIt = `, overrides: {dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, metadata: {name: r}}}`

// annotated adds an annotation that somebody forged.
func annotated(o *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	annotations := o.GetAnnotations()
	annotations[key] = value
	o.SetAnnotations(annotations)
	return o
}

// runsAs is the account of the Job that profiles for a request.
func (s *scene) runsAs(ns, name string) string {
	s.Helper()
	job := &batchv1.Job{}
	s.eventually("the profiling Job", func(ctx context.Context) error {
		return s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "profile-" + name}, job)
	})
	return job.Spec.Template.Spec.ServiceAccountName
}

var _ = add(
	attack{
		name: "a request of v1beta1 has its profiler run as another account", heldBy: []barrier{code(joboverride.GuardAccount)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(&corev1.ServiceAccount{ObjectMeta: meta(ns, "powerful")})
			s.ask(s.tenant(ns, "edit"), betaRequest(ns, "r", `, overrides: {profilingJob: {template: {spec: {serviceAccountName: powerful, containers: []}}}}`))
			if account := s.runsAs(ns, "r"); account == "powerful" {
				return gotThrough("the Job runs as %s", account)
			}
			return held("the Job runs as %s", s.runsAs(ns, "r"))
		},
	},
	attack{
		name:   "the payload of a request of v1beta1 has its profiler run as another account",
		heldBy: []barrier{design("the Job is made from the fields of v1alpha1, in which a payload has no say")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(&corev1.ServiceAccount{ObjectMeta: meta(ns, "powerful")})
			forged := annotated(betaRequest(ns, "r", ""), v1alpha1.AnnotationRequestPayload,
				`{"version":1,"spec":{"model":"","searchStrategy":"rapid","hardware":{"gpuSku":"h200_sxm"},"overrides":{"profilingJob":{"template":{"spec":{"serviceAccountName":"powerful","containers":[]}}}}}}`)
			s.ask(s.tenant(ns, "edit"), forged)
			if account := s.runsAs(ns, "r"); account == "powerful" {
				return gotThrough("the Job runs as %s", account)
			}
			return held("the Job runs as %s", s.runsAs(ns, "r"))
		},
	},
	attack{
		name:   "the graph's override of a request of v1beta1 has it made in another namespace",
		heldBy: []barrier{design("of an override's metadata only name, labels and annotations are taken")},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			s.ask(s.tenant(ns, "edit"), betaRequest(ns, "r", `, overrides: {dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, metadata: {name: r, namespace: `+victim+`}}}`))
			return s.goesTo(ns, victim, "r", s.graphIn(ns, "r"))
		},
	},
	attack{
		name:   "the payload of a request of v1beta1 has its graph made in another namespace",
		heldBy: []barrier{design("a payload is read as v1beta1, which has no namespace, and counts only for what v1alpha1 cannot say")},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			s.ask(s.tenant(ns, "edit"), annotated(betaRequest(ns, "r", namedLikeIt), v1alpha1.AnnotationRequestPayload,
				fmt.Sprintf(`{"version":1,"spec":{"model":"","hardware":{"gpuSku":"h200_sxm"},"deploymentOverrides":{"namespace":%q}}}`, victim)))
			return s.goesTo(ns, victim, "r", s.graphIn(ns, "r"))
		},
	},
	attack{
		name: "a request of v1beta1 has a graph made where nobody agreed to it", heldBy: []barrier{code(requestplan.GuardConsent)},
		try: func(s *scene) outcome {
			ns, victim := s.namespace(nil), s.namespace(nil)
			r := betaRequest(ns, "r", namedLikeIt)
			if err := unstructured.SetNestedField(r.Object, victim, "spec", "deploymentOverrides", "namespace"); err != nil {
				s.Fatal(err)
			}
			s.ask(s.author(ns, victim), r)
			return s.goesTo(ns, victim, "r", s.says(ns, "r", v1alpha1.ConditionValidation, v1alpha1.ReasonNamespaceNotGranted))
		},
	},
)
