package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

const base = "Qwen/Qwen3-0.6B"

// engine is a graph of one engine that loads adapters.
const engine = `{backendFramework: vllm, services: {decode: {componentType: worker, modelRef: {name: ` + base + `},
  envs: [{name: DYN_LORA_ENABLED, value: "true"}],
  extraPodSpec: {mainContainer: {image: "dynamo-mocker:dev", command: [python3, -m, dynamo.vllm], args: [--model, ` + base + `, --enable-lora]}}}}}`

// engineIn runs an engine in a namespace and is its pod.
func (s *scene) engineIn(ns string) corev1.Pod {
	s.Helper()
	s.create(graphOf(ns, "engine", engine))
	s.ready(ns, "engine")
	return s.podIn(ns, "engine")
}

func (s *scene) podIn(ns, graphName string) corev1.Pod {
	s.Helper()
	var found corev1.Pod
	s.eventually("a pod of "+graphName, func(ctx context.Context) error {
		var list corev1.PodList
		if err := s.Client.List(ctx, &list, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelGraphName: graphName}); err != nil {
			return err
		}
		if len(list.Items) == 0 || list.Items[0].Status.PodIP == "" {
			return errors.New("it has no address")
		}
		found = list.Items[0]
		return nil
	})
	return found
}

// adapters asks an engine what it holds.
func (s *scene) adapters(ctx context.Context, pod corev1.Pod) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:9090/v1/loras", pod.Status.PodIP), http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := s.HTTP.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list struct {
		LoRAs map[string]any `json:"loras"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return "", fmt.Errorf("%s: %w", response.Status, err)
	}
	return fmt.Sprint(list.LoRAs), nil
}

// holds is nil once an engine holds an adapter.
func (s *scene) holds(pod corev1.Pod, adapter string) func(context.Context) error {
	return func(ctx context.Context) error {
		held, err := s.adapters(ctx, pod)
		if err != nil {
			return err
		}
		if !strings.Contains(held, adapter) {
			return fmt.Errorf("it holds %s", held)
		}
		return nil
	}
}

func lora(ns, name, adapter string) *v1alpha1.DynamoModel {
	m := &v1alpha1.DynamoModel{ObjectMeta: meta(ns, name)}
	m.Spec = v1alpha1.DynamoModelSpec{
		ModelName: adapter, BaseModelName: base, ModelType: v1alpha1.ModelTypeLoRA, Source: &v1alpha1.ModelSource{URI: "s3://evil/adapter"},
	}
	return m
}

// sliceTo says that a base model is served at an address, by a pod.
func sliceTo(ns, address string, target *corev1.ObjectReference) *discoveryv1.EndpointSlice {
	o := meta(ns, "rogue")
	o.Labels = map[string]string{v1alpha1.LabelBaseModelHash: graph.ModelHash(base), discoveryv1.LabelServiceName: graph.ModelService(base)}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: o, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, TargetRef: target, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
}

// called is nil once a model counts an address among its endpoints: it is asked
// for its adapters.
func (s *scene) called(ns, name, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		m, err := s.model(ctx, ns, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(m.Status.Endpoints, func(e v1alpha1.ModelEndpoint) bool { return strings.Contains(e.Address, address) }) {
			return fmt.Errorf("endpoints %v", m.Status.Endpoints)
		}
		return nil
	}
}

// noEndpoints is nil once a model has been looked at, its slice too, and it has
// nobody to call.
func (s *scene) noEndpoints(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		m, err := s.model(ctx, ns, name)
		if err != nil {
			return err
		}
		if c := conditions.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServicesFound); c == nil || c.Status != "True" {
			return fmt.Errorf("the slice is not seen yet: %+v", c)
		}
		if c := conditions.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionEndpointsReady); c == nil || c.Reason != v1alpha1.ReasonNoEndpoints {
			return fmt.Errorf("%+v", c)
		}
		return nil
	}
}

func (s *scene) model(ctx context.Context, ns, name string) (*v1alpha1.DynamoModel, error) {
	m := &v1alpha1.DynamoModel{}
	return m, s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, m)
}

// sliceWriter is a tenant who may say where Services lead.
func sliceWriter(s *scene, ns string) client.WithWatch {
	return s.tenant(ns, "edit", s.role(allOf("discovery.k8s.io", "endpointslices")))
}

// pointing has a model's engines looked for at an address, behind the name of a
// pod of the tenant's own.
func pointing(s *scene, ns, address string, target func(own corev1.Pod) *corev1.ObjectReference) {
	s.Helper()
	mallory := sliceWriter(s, ns)
	if err := mallory.Create(s.ctx, graphOf(ns, "own", idle)); err != nil {
		s.Fatal(err)
	}
	own := s.podIn(ns, "own")
	if err := mallory.Create(s.ctx, sliceTo(ns, address, target(own))); err != nil {
		s.Fatal(err)
	}
	if err := mallory.Create(s.ctx, lora(ns, "m", "evil")); err != nil {
		s.Fatal(err)
	}
}

func itself(own corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: own.Namespace, Name: own.Name, UID: own.UID}
}

var _ = add(
	attack{
		name: "a model's EndpointSlice leads to an engine of another namespace", finding: "S8", heldBy: []barrier{code(observe.PodAddress)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			target := s.engineIn(victim)
			pointing(s, ns, target.Status.PodIP, itself)
			if s.either("the model to be looked at", s.holds(target, "evil"), s.noEndpoints(ns, "m")) {
				return gotThrough("the engine of %s holds the adapter", victim)
			}
			return held("the model has no endpoints")
		},
	},
	attack{
		name: "a model's EndpointSlice has the operator call an address of the cluster", finding: "S8", heldBy: []barrier{code(observe.PodAddress)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			api := &corev1.Service{}
			if err := s.Client.Get(s.ctx, types.NamespacedName{Namespace: "default", Name: "kubernetes"}, api); err != nil {
				s.Fatal(err)
			}
			pointing(s, ns, api.Spec.ClusterIP, itself)
			if s.either("the model to be looked at", s.called(ns, "m", api.Spec.ClusterIP), s.noEndpoints(ns, "m")) {
				return gotThrough("%s is called", api.Spec.ClusterIP)
			}
			return held("the model has no endpoints")
		},
	},
	attack{
		name: "a model's EndpointSlice has the operator call the metadata service of the cloud", finding: "S8",
		heldBy: []barrier{platform("the API server takes no link-local address into a slice")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.refused(sliceWriter(s, ns).Create(s.ctx, sliceTo(ns, "169.254.169.254", nil)))
		},
	},
	attack{
		name: "a model's EndpointSlice names a pod of another namespace as its target", finding: "S8",
		heldBy: []barrier{design("pods are looked up in the model's own namespace, whatever a reference says")},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			target := s.engineIn(victim)
			pointing(s, ns, target.Status.PodIP, func(corev1.Pod) *corev1.ObjectReference { return itself(target) })
			if s.either("the model to be looked at", s.holds(target, "evil"), s.noEndpoints(ns, "m")) {
				return gotThrough("the engine of %s holds the adapter", victim)
			}
			return held("the model has no endpoints")
		},
	},
	attack{
		name: "a model loads its adapter into engines of the same base in another namespace", finding: "S8",
		heldBy: []barrier{design("only slices of the model's own namespace are read")},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			target := s.engineIn(victim)
			if err := s.tenant(ns, "edit").Create(s.ctx, lora(ns, "m", "evil")); err != nil {
				s.Fatal(err)
			}
			if s.either("the model to be looked at", s.holds(target, "evil"), func(ctx context.Context) error {
				m, err := s.model(ctx, ns, "m")
				if err != nil {
					return err
				}
				if c := conditions.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionServicesFound); c == nil || c.Reason != v1alpha1.ReasonNoServicesFound {
					return fmt.Errorf("%+v", c)
				}
				return nil
			}) {
				return gotThrough("the engine of %s holds the adapter", victim)
			}
			return held("the model finds no Service")
		},
	},
	attack{
		name: "an adapter's name leads the operator to another path of an engine", heldBy: []barrier{schema, code(validation.Judgement)}, webhooksDown: true,
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.engineIn(ns)
			if err := s.tenant(ns, "edit").Create(s.ctx, lora(ns, "m", "../../v1/anything")); err != nil {
				return s.refused(err)
			}
			pod := s.podIn(ns, "engine")
			if s.either("the model to be judged", s.called(ns, "m", pod.Status.PodIP), s.invalid(ofOurs("DynamoModel", ns, "m", `{}`))) {
				return gotThrough("the engine is called with it")
			}
			return held("the model says that it is not valid")
		},
	},
	attack{
		name: "an adapter is fetched from where no adapter can be", heldBy: []barrier{schema, code(validation.Judgement)}, webhooksDown: true,
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			pod := s.engineIn(ns)
			m := lora(ns, "m", "evil")
			m.Spec.Source.URI = "http://169.254.169.254/latest/meta-data"
			if err := s.tenant(ns, "edit").Create(s.ctx, m); err != nil {
				return s.refused(err)
			}
			if s.either("the model to be judged", s.called(ns, "m", pod.Status.PodIP), s.invalid(ofOurs("DynamoModel", ns, "m", `{}`))) {
				return gotThrough("the engine is told to fetch it")
			}
			return held("the model says that it is not valid")
		},
	},
	attack{
		name: "a second model of another's adapter name replaces or unloads it", heldBy: []barrier{design("a rival of an older model calls nobody")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			pod := s.engineIn(ns)
			s.create(lora(ns, "first", "support"))
			s.eventually("the first to be loaded", s.holds(pod, "support"))
			mallory := s.tenant(ns, s.role(allOf("nvidia.com", "dynamomodels")))
			rival := lora(ns, "second", "support")
			rival.Spec.Source.URI = "s3://evil/other"
			if err := mallory.Create(s.ctx, rival); err != nil {
				s.Fatal(err)
			}
			s.eventually("the second to be judged", func(ctx context.Context) error {
				m, err := s.model(ctx, ns, "second")
				if err != nil {
					return err
				}
				if c := conditions.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionEndpointsReady); c == nil || c.Reason != v1alpha1.ReasonNameConflict {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
			if err := mallory.Delete(s.ctx, rival); err != nil {
				s.Fatal(err)
			}
			s.eventually("the second to go", func(ctx context.Context) error {
				_, err := s.model(ctx, ns, "second")
				return gone(err)
			})
			if err := s.holds(pod, "support")(s.ctx); err != nil {
				return gotThrough("%v", err)
			}
			return held("the engine holds the first")
		},
	},
)
