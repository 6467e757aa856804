package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/profile/result"
	"github.com/dynamo-operator/dynamo-operator/internal/request"
	"github.com/dynamo-operator/dynamo-operator/internal/validation"
)

// requestPolicy keeps requests from having graphs made where their author could
// not.
const requestPolicy = "dynamo-operator-request-namespace"

// requestOf asks for a graph that is found by estimation, within seconds. The
// name is the graph's as well.
func requestOf(ns, name, more string) *unstructured.Unstructured {
	return ofOurs("DynamoGraphDeploymentRequest", ns, name, `{model: Qwen/Qwen3-0.6B, backend: vllm, autoApply: true`+more+`, profilingConfig: {profilerImage: "dynamo-profiler:dev",
		config: {sla: {isl: 1000, osl: 50, ttft: 1000, itl: 50}, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}, hardware: {numGpusPerNode: 8, maxNumGpusPerEngine: 1}}}}`)
}

func elsewhereIn(target string) string { return `, deploymentOverrides: {namespace: ` + target + `}` }

func requestFor(ns, target string) *unstructured.Unstructured {
	return requestOf(ns, "r", elsewhereIn(target))
}

// graphIn is nil once there is a graph of a name.
func (s *scene) graphIn(ns, name string) func(context.Context) error {
	return s.exists(&v1alpha1.DynamoGraphDeployment{ObjectMeta: meta(ns, name)})
}

func (s *scene) request(ctx context.Context, ns, name string) (*v1alpha1.DynamoGraphDeploymentRequest, error) {
	r := &v1alpha1.DynamoGraphDeploymentRequest{}
	return r, s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, r)
}

// tells is nil once a request says something under one of its conditions.
func (s *scene) tells(ns, name string, reasons ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := s.request(ctx, ns, name)
		if err != nil {
			return err
		}
		for _, c := range r.Status.Conditions {
			for _, reason := range reasons {
				if c.Reason == reason && c.Status == "False" {
					return nil
				}
			}
		}
		return fmt.Errorf("it is %s and says %v", r.Status.State, r.Status.Conditions)
	}
}

// deployedTo is nil once a request has made its graph in a namespace.
func (s *scene) deployedTo(ns, name, target string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := s.request(ctx, ns, name)
		if err != nil {
			return err
		}
		if d := r.Status.Deployment; d == nil || !d.Created || d.Namespace != target {
			return fmt.Errorf("it is %s, %+v, and says %v", r.Status.State, d, r.Status.Conditions)
		}
		return nil
	}
}

// grants has a namespace allow requests from another, by an account that may do
// itself what they ask for.
func (s *scene) grants(target, from string) {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: meta(target, "consenting")}
	account.Annotations = map[string]string{v1alpha1.AnnotationAllowRequestsFrom: from}
	s.create(account)
	s.bind(target, "edit", account)
}

// recordOf is what an attacker would like a request to have asked.
func recordOf(victim string) string {
	text, err := json.Marshal(map[string]any{
		"model": "Qwen/Qwen3-0.6B", "backend": "vllm", "autoApply": true, "deploymentOverrides": map[string]any{"namespace": victim},
		"profilingConfig": map[string]any{"profilerImage": "dynamo-profiler:dev", "config": map[string]any{}},
	})
	if err != nil {
		panic(err) // a literal of a test
	}
	return string(text)
}

// writesMaps is a tenant who may write ConfigMaps, and nothing of ours.
func writesMaps(s *scene, ns string) client.WithWatch {
	return s.tenant(ns, s.role(allOf("", "configmaps")))
}

// reserved is an attack on a namespace in which nobody is asked, by somebody who
// may make graphs everywhere, so that no other rule stands in the way.
func reserved(name, target string, down bool) attack {
	return attack{
		name: name, finding: "S1", webhooksDown: down,
		heldBy: []barrier{code(validation.GuardReserved), code(request.GuardConsent), code(request.GuardPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			asked := requestOf(ns, ns, elsewhereIn(target))
			if err := s.everywhere(ns, "edit").Create(s.ctx, asked); err != nil {
				return s.refused(err)
			}
			made := &v1alpha1.DynamoGraphDeployment{ObjectMeta: meta(target, graph.RequestedGraph(ns))}
			s.Cleanup(func() { s.Client.Delete(context.Background(), made) })
			if s.either("the request to be judged", s.exists(made), s.tells(ns, ns, v1alpha1.ReasonNamespaceReserved, v1alpha1.ReasonValidationFailed)) {
				return gotThrough("there is a graph in %s", target)
			}
			return held("the request says that it may not")
		},
	}
}

var _ = add(
	attack{
		name: "a request has a graph made where its author may not make one", finding: "S1",
		heldBy: []barrier{policy(requestPolicy), code(request.GuardConsent), code(request.GuardPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			if err := s.tenant(ns, "edit").Create(s.ctx, requestFor(ns, victim)); err != nil {
				return s.refused(err)
			}
			s.eventually("the graph", s.graphIn(victim, "r"))
			return gotThrough("there is a graph in %s", victim)
		},
	},
	attack{
		name: "a request has a graph made in a namespace that has not agreed to it", finding: "S1",
		heldBy: []barrier{code(request.GuardConsent), code(request.GuardPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			s.create(requestFor(ns, victim)) // by somebody who may make graphs in both
			if s.either("the request to be judged", s.graphIn(victim, "r"), s.tells(ns, "r", v1alpha1.ReasonNamespaceNotGranted)) {
				return gotThrough("there is a graph in %s", victim)
			}
			return held("the request waits for consent")
		},
	},
	attack{
		name: "a request has a graph made by an account that could not make it itself", finding: "S1",
		heldBy: []barrier{code(request.GuardConsent), code(request.GuardPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			account := &corev1.ServiceAccount{ObjectMeta: meta(victim, "powerless")}
			account.Annotations = map[string]string{v1alpha1.AnnotationAllowRequestsFrom: ns}
			s.create(account)
			s.create(requestFor(ns, victim))
			if s.either("the request to be judged", s.graphIn(victim, "r"), s.tells(ns, "r", v1alpha1.ReasonGrantInsufficient)) {
				return gotThrough("there is a graph in %s", victim)
			}
			return held("the request says what the account lacks")
		},
	},
	attack{
		name: "an editor leads somebody else's request for another namespace to another image", finding: "S1", heldBy: []barrier{policy(requestPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			theirs := requestFor(ns, victim)
			s.create(theirs)
			return s.refused(s.tenant(ns, "edit").Patch(s.ctx, theirs, merge(`{"spec":{"deploymentOverrides":{"workersImage":"evil"}}}`)))
		},
	},
	attack{
		name: "an edited record of a request names another namespace", finding: "S1",
		heldBy: []barrier{design("what was accepted stands in the status, and nowhere else")},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			s.create(requestOf(ns, "r", ""))
			mallory := writesMaps(s, ns)
			s.eventually("the record to be edited", func(ctx context.Context) error {
				return mallory.Patch(ctx, &corev1.ConfigMap{ObjectMeta: meta(ns, graph.ProfilingInput("r"))}, merge(fmt.Sprintf(`{"data":{"spec.json":%q}}`, recordOf(victim))))
			})
			if s.either("the request to be carried out", s.graphIn(victim, "r"), s.deployedTo(ns, "r", ns)) {
				return gotThrough("there is a graph in %s", victim)
			}
			return held("the graph is beside the request")
		},
	},
	attack{
		name: "a record that was made before its request names another namespace", finding: "S1",
		heldBy: []barrier{design("what was accepted stands in the status, and nowhere else")},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			record := &corev1.ConfigMap{ObjectMeta: meta(ns, graph.ProfilingInput("r")), Data: map[string]string{"spec.json": recordOf(victim)}}
			record.Labels = map[string]string{
				v1alpha1.LabelRequestName: "r", v1alpha1.LabelRequestNamespace: ns, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
				"app.kubernetes.io/managed-by": "dynamo-operator",
			}
			record.Annotations = map[string]string{v1alpha1.AnnotationProfilingAttempt: "1"}
			if err := writesMaps(s, ns).Create(s.ctx, record); err != nil {
				s.Fatal(err)
			}
			s.create(requestOf(ns, "r", ""))
			if s.either("the request to be judged", s.graphIn(victim, "r"), s.tells(ns, "r", v1alpha1.ReasonNameConflict)) {
				return gotThrough("there is a graph in %s", victim)
			}
			return held("the request says that the name is taken")
		},
	},
	attack{
		name: "an edited output of a profiler becomes a graph", finding: "S1", heldBy: []barrier{code(request.GuardOutput)},
		try: func(s *scene) outcome {
			// The edit has to come between the profiler's last word and the end of its
			// Job; in a few tries it does.
			ns := s.namespace(nil)
			mallory := writesMaps(s, ns)
			var last outcome
			for i := range 4 {
				name := fmt.Sprintf("r%d", i)
				if last = s.forgeOutput(mallory, ns, name); last.through {
					return last
				}
				if err := s.tells(ns, name, v1alpha1.ReasonOutputNotProven)(s.ctx); err == nil {
					return held("the request says that the output is not the profiler's")
				}
			}
			return last
		},
	},
	attack{
		name: "a request's graph runs under an account of its target", finding: "S1", heldBy: []barrier{code(request.GuardAccount)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			s.grants(victim, ns)
			s.create(&corev1.ServiceAccount{ObjectMeta: meta(victim, "powerful")})
			s.create(&corev1.ConfigMap{ObjectMeta: meta(ns, "base"), Data: map[string]string{"graph.yaml": `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: base}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec: {serviceAccountName: powerful, mainContainer: {image: "registry.example/vllm-runtime:1"}}
    Worker:
      componentType: worker
      replicas: 1
      extraPodSpec:
        serviceAccountName: powerful
        mainContainer: {image: "registry.example/vllm-runtime:1", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B]}
`}})
			asked := requestFor(ns, victim)
			if err := unstructured.SetNestedField(asked.Object, map[string]any{"name": "base", "key": "graph.yaml"}, "spec", "profilingConfig", "configMapRef"); err != nil {
				s.Fatal(err)
			}
			s.create(asked) // by somebody who may make graphs in both
			if s.either("the request to be carried out", s.runsAs(victim, "r", "powerful"), s.tells(ns, "r", v1alpha1.ReasonDeploymentRefused)) {
				return gotThrough("the graph runs as powerful")
			}
			return held("the request says that the graph is refused")
		},
	},
	reserved("a request has a graph made in a namespace of the system", "kube-system", false),
	reserved("a request has a graph made in the operator's own namespace", installation.Namespace, false),
	reserved("a request has a graph made in a namespace of the system while no webhook answers", "kube-system", true),
)

// runsAs is nil once a graph has pods of an account.
func (s *scene) runsAs(ns, name, account string) func(context.Context) error {
	return func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
			return err
		}
		for _, service := range dgd.Spec.Services {
			if service != nil && service.ExtraPodSpec != nil && service.ExtraPodSpec.PodSpec != nil && service.ExtraPodSpec.ServiceAccountName == account {
				return nil
			}
		}
		return errors.New("it runs under others")
	}
}

// forgeOutput has a request profiled and changes what its profiler writes down, as
// soon as that is there.
func (s *scene) forgeOutput(mallory client.WithWatch, ns, name string) outcome {
	s.Helper()
	const evil = "registry.example/evil:1"
	output := &corev1.ConfigMap{ObjectMeta: meta(ns, graph.ProfilingOutput(name))}
	list := &corev1.ConfigMapList{}
	seen, err := mallory.Watch(s.ctx, list, client.InNamespace(ns), client.MatchingFields{"metadata.name": output.Name})
	if err != nil {
		s.Fatal(err)
	}
	defer seen.Stop()
	s.create(requestOf(ns, name, ""))
	for e := range seen.ResultChan() {
		found, ok := e.Object.(*corev1.ConfigMap)
		if !ok || found.Data[result.KeyResult] == "" {
			continue
		}
		var said map[string]any
		if err := json.Unmarshal([]byte(found.Data[result.KeyResult]), &said); err != nil {
			s.Fatal(err)
		}
		text, _ := said["generatedDeployment"].(string)
		said["generatedDeployment"] = swapImages(text, evil)
		forged, err := json.Marshal(said)
		if err != nil {
			s.Fatal(err)
		}
		if err := mallory.Patch(s.ctx, output, merge(fmt.Sprintf(`{"data":{%q:%q}}`, result.KeyResult, forged))); err != nil {
			s.Fatal(err)
		}
		break
	}
	if s.either("the request to be carried out", func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
			return err
		}
		text, err := json.Marshal(dgd.Spec)
		if err != nil || !strings.Contains(string(text), evil) {
			return errors.Join(errors.New("it has its own images"), err)
		}
		return nil
	}, func(ctx context.Context) error {
		r, err := s.request(ctx, ns, name)
		if err != nil {
			return err
		}
		if c := conditions.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionSpecGenerated); c == nil {
			return fmt.Errorf("it is %s", r.Status.State)
		}
		if r.Status.State != v1alpha1.RequestStateFailed {
			return s.deployedTo(ns, name, ns)(ctx)
		}
		return nil
	}) {
		return gotThrough("the graph runs %s", evil)
	}
	return held("the graph has the images that were found")
}

// swapImages gives every container of a graph another image.
func swapImages(text, image string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if before, _, found := strings.Cut(line, "image: "); found {
			line = before + "image: " + image + "\n"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}
