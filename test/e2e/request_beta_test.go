package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// askBeta makes a request that was written as v1beta1, as a converter stores it.
func (w world) askBeta(name, spec string) {
	w.Helper()
	var fields map[string]any
	text := fmt.Sprintf(`{apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeploymentRequest, metadata: {name: %s, namespace: %s}, spec: %s}`, name, w.namespace, spec)
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		w.Fatal(err)
	}
	schema, known, err := crdschema.OfVersion(v1alpha1.KindDynamoGraphDeploymentRequest, conversion.Beta)
	if err != nil || !known {
		w.Fatalf("no schema of v1beta1: %v", err)
	}
	schema.Default(fields)
	raw, err := json.Marshal(fields)
	if err != nil {
		w.Fatal(err)
	}
	stored, err := conversion.Convert(raw, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		w.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(stored.JSON); err != nil {
		w.Fatal(err)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	w.create(object)
}

// betaPhases follows a request, as v1beta1 shows it, until it is in a phase.
func (w world) betaPhases(name string, until v1beta1.RequestPhase) (phases []v1beta1.RequestPhase, last *v1beta1.DynamoGraphDeploymentRequest) {
	w.Helper()
	list := &v1alpha1.DynamoGraphDeploymentRequestList{}
	events, err := w.cluster.Client.Watch(w.ctx, list, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	defer events.Stop()
	for {
		select {
		case <-w.ctx.Done():
			w.Fatalf("request %s came as far as %v: %+v", name, phases, last.Status)
		case event, open := <-events.ResultChan():
			if !open {
				w.Fatalf("the watch ended at %v", phases)
			}
			r, ok := event.Object.(*v1alpha1.DynamoGraphDeploymentRequest)
			if !ok || r.Name != name || event.Type == watch.Deleted {
				continue
			}
			last, _ = conversion.RequestToBeta(r)
			if p := last.Status.Phase; p != "" && (len(phases) == 0 || phases[len(phases)-1] != p) {
				phases = append(phases, p)
			}
			if last.Status.Phase == until {
				return phases, last
			}
			if last.Status.Phase == v1beta1.RequestPhaseFailed {
				w.Fatalf("request %s failed: %+v", name, last.Status.Conditions)
			}
		}
	}
}

// TestBetaRequestsBecomeGraphsThatAnswer goes from a request that was written as
// v1beta1 to an answer, by our profiler: with the model alone, with mock engines, a
// planner and both overrides.
func TestBetaRequestsBecomeGraphsThatAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec, graph string
		services    []string
	}{
		"model-alone": {
			spec:  `{model: Qwen/Qwen3-0.6B, hardware: {totalGpus: 2}}`,
			graph: "model-alone-dgd",
		},
		"mock-with-planner": {
			spec: `{model: Qwen/Qwen3-0.6B, backend: vllm, image: dynamo-profiler, hardware: {totalGpus: 2}, workload: {isl: 1000, osl: 50}, sla: {ttft: 1000, itl: 50},
				features: {mocker: {enabled: true}, planner: {mode: disagg, backend: vllm, enable_load_scaling: false}},
				overrides: {
					profilingJob: {backoffLimit: 1, template: {spec: {containers: [{name: profiler, env: [{name: NOTE, value: mine}]}]}}},
					dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, metadata: {labels: {team: a}},
						spec: {components: [{name: Frontend, podTemplate: {spec: {containers: [{name: main, env: [{name: DYN_ROUTER_MODE, value: kv}]}]}}}]}}}}`,
			graph: "mock-with-planner-dgd", services: []string{"Frontend", "Planner", "decode", "prefill"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.askBeta(name, test.spec)
			phases, r := w.betaPhases(name, v1beta1.RequestPhaseDeployed)
			summary.Line(t, "request %s of v1beta1: %v", name, phases)
			// A watch may skip a phase that was over at once, but none is out of order.
			order := []v1beta1.RequestPhase{v1beta1.RequestPhasePending, v1beta1.RequestPhaseProfiling, v1beta1.RequestPhaseDeploying, v1beta1.RequestPhaseDeployed}
			if !slices.IsSortedFunc(phases, func(a, b v1beta1.RequestPhase) int { return slices.Index(order, a) - slices.Index(order, b) }) {
				t.Errorf("its phases are %v", phases)
			}
			for _, kind := range []string{v1alpha1.ConditionValidation, v1alpha1.ConditionProfiling, v1alpha1.ConditionSpecGenerated, v1alpha1.ConditionDeploymentReady, v1alpha1.ConditionSucceeded} {
				if !slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue }) {
					t.Errorf("it is deployed, but %s is not true: %+v", kind, r.Status.Conditions)
				}
			}
			if s := r.Status; s.DGDName != test.graph || s.ProfilingJobName != "profile-"+name || s.ProfilingPhase != "Done" || s.ProfilingResults == nil || s.ProfilingResults.SelectedConfig == nil {
				t.Errorf("its status: %+v", s)
			}
			var selected v1beta1.DynamoGraphDeployment
			if err := json.Unmarshal(r.Status.ProfilingResults.SelectedConfig.Raw, &selected); err != nil || selected.APIVersion != v1beta1.SchemeGroupVersion.String() {
				t.Errorf("the graph is shown as %q: %v", selected.APIVersion, err)
			}
			dgd := w.ready(test.graph)
			w.answers(w.frontendURL(dgd))
			w.eventually("replicas to be counted", func(context.Context) error {
				if info := w.request(name).Status.DeploymentInfo; info == nil || info.Replicas == nil || *info.Replicas == 0 {
					return errors.New("none")
				}
				return nil
			})
			if test.services == nil {
				return
			}
			var services []string
			for name := range dgd.Spec.SortedServices() {
				services = append(services, name)
			}
			if !slices.Equal(services, test.services) || dgd.Labels["team"] != "a" || conversion.WrittenAs(dgd) != conversion.Beta {
				t.Errorf("the graph has %v, labels %v, written as %s", services, dgd.Labels, conversion.WrittenAs(dgd))
			}
			beta, _ := conversion.GraphToBeta(dgd)
			for _, c := range beta.Spec.Components {
				main := c.PodTemplate.Spec.Containers[0]
				switch c.Name {
				case "Frontend":
					if len(main.Env) != 1 || main.Env[0].Value != "kv" {
						t.Errorf("the override is not there: %+v", main.Env)
					}
				case "Planner":
					if len(main.Args) != 2 || main.Args[0] != "--config" {
						t.Errorf("the planner is told %v", main.Args)
					}
				}
			}
			job := &batchv1.Job{}
			if err := w.cluster.Client.Get(w.ctx, w.key("profile-"+name), job); err != nil {
				t.Fatal(err)
			}
			env := job.Spec.Template.Spec.Containers[0].Env
			if *job.Spec.BackoffLimit != 1 || env[len(env)-1].Name != "NOTE" {
				t.Errorf("the Job is not as overridden: %d %+v", *job.Spec.BackoffLimit, env)
			}
		})
	}
}
