package attack

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// sleepy is what lets graphs scale to zero; the operator has the role that is shipped
// for it as well.
const sleepy = "activator: {enabled: true}"

func mayActivate() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "activation"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-activation"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: localenv.OperatorKey.Namespace, Name: localenv.OperatorKey.Name}},
	}
}

// napping is a graph with a frontend and an engine, which ends soon after the last request.
func napping(ns, name string) client.Object {
	const runtime = `image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0"`
	g := graphOf(ns, name, `{services: {
		Frontend: {componentType: frontend, extraPodSpec: {mainContainer: {`+runtime+`}}},
		decode: {componentType: worker, extraPodSpec: {mainContainer: {`+runtime+`, command: [python3, -m, dynamo.vllm], args: [--model, `+napModel+`]}}}}}`)
	g.SetAnnotations(map[string]string{v1alpha1.AnnotationScaleToZeroAfter: "10s"})
	return g
}

const napModel = "Qwen/Qwen3-0.6B"

// asleep is nil once a graph sleeps, awake once it does not any more.
func (s *scene) asleep(ns, name string) func(context.Context) error { return s.phase(ns, name, true) }
func (s *scene) awake(ns, name string) func(context.Context) error  { return s.phase(ns, name, false) }

func (s *scene) phase(ns, name string, asleep bool) func(context.Context) error {
	return func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
			return err
		}
		if c := conditions.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionDormant); c == nil || (c.Status == metav1.ConditionTrue) != asleep {
			return fmt.Errorf("Dormant is %v", c)
		}
		return nil
	}
}

// someoneIn is somebody in a pod of a graph: frontends and workers run under one account.
func (s *scene) someoneIn(ns, name string) client.WithWatch {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: meta(ns, graph.DiscoveryAccount(name))}
	s.eventually("the account of graph "+name, s.exists(account))
	return s.as(account)
}

// asks says on a graph's Lease that a request came at a time.
func asks(s *scene, who client.Client, ns, name string, at time.Time) error {
	lease := &coordinationv1.Lease{ObjectMeta: meta(ns, graph.ActivationName(name))}
	return who.Patch(s.ctx, lease, merge(`{"spec":{"renewTime":"`+at.UTC().Format(metav1.RFC3339Micro)+`"}}`))
}

// wakesOther is an attack on a graph that sleeps by a pod of another graph.
func wakesOther(name string, from func(s *scene, ns string) client.Client) attack {
	return attack{name: name, heldBy: []barrier{rights}, try: func(s *scene) outcome {
		ns := s.namespace(nil)
		s.create(napping(ns, "g"))
		mallory := from(s, ns)
		s.eventually("the graph to sleep", s.asleep(ns, "g"))
		if err := asks(s, mallory, ns, "g", time.Now()); err != nil {
			return s.refused(err)
		}
		s.eventually("the graph to wake", s.awake(ns, "g"))
		return gotThrough("its workers start")
	}}
}

var _ = add(
	wakesOther("a pod of one graph wakes another graph of its namespace", func(s *scene, ns string) client.Client {
		s.create(graphOf(ns, "mallory", idle))
		return s.someoneIn(ns, "mallory")
	}),
	wakesOther("a pod wakes the graph of the same name in another namespace", func(s *scene, _ string) client.Client {
		other := s.namespace(nil)
		s.create(graphOf(other, "g", idle))
		return s.someoneIn(other, "g")
	}),
	attack{
		name: "a pod of one graph puts another to sleep for good", heldBy: []barrier{rights},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(napping(ns, "g"))
			s.create(graphOf(ns, "mallory", idle))
			lease := &coordinationv1.Lease{ObjectMeta: meta(ns, graph.ActivationName("g"))}
			s.eventually("the Lease", s.exists(lease))
			// Without its Lease the graph cannot be woken, and one of another's making is not believed.
			return s.refused(s.someoneIn(ns, "mallory").Delete(s.ctx, lease))
		},
	},
	attack{
		name: "a pod says that a request came next year, and its graph holds its GPUs until then", heldBy: []barrier{code(dormancy.GuardClock)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(napping(ns, "g"))
			s.eventually("the graph to sleep", s.asleep(ns, "g"))
			if err := asks(s, s.someoneIn(ns, "g"), ns, "g", time.Now().AddDate(1, 0, 0)); err != nil {
				s.Fatal(err)
			}
			if s.either("the time to be believed", s.awake(ns, "g"), s.laterOnes(ns)) {
				return gotThrough("its workers start, and nothing is going to end them")
			}
			return held("it sleeps on")
		},
	},
	attack{
		name: "a pod fills the Lease of its graph, and requests wake nobody", heldBy: []barrier{design("an activator tells the time alone where nothing else fits")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(napping(ns, "g"))
			s.eventually("the graph to sleep", s.asleep(ns, "g"))
			// All that the API server takes, and not as much as one more name of a model.
			lease := &coordinationv1.Lease{ObjectMeta: meta(ns, graph.ActivationName("g"))}
			pod := s.someoneIn(ns, "g")
			fill := func(bytes int) error {
				return pod.Patch(s.ctx, lease, merge(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationActivationModels+`":null,"x":"`+strings.Repeat("x", bytes)+`"}}}`))
			}
			low, high := 0, 256<<10
			for low < high {
				if middle := (low + high + 1) / 2; fill(middle) == nil {
					low = middle
				} else {
					high = middle - 1
				}
			}
			if low < 200<<10 {
				s.Fatalf("the Lease takes %d bytes", low)
			}
			if err := fill(low); err != nil {
				s.Fatal(err)
			}
			tokens := 0
			if err := s.Chat(s.ctx, fmt.Sprintf("http://%s.%s.svc:8000", graph.ServiceName("g", "Frontend"), ns), napModel, "hello", 4, func(string) { tokens++ }); err != nil || tokens == 0 {
				return gotThrough("a request has no answer: %v", err)
			}
			return held("a request has %d tokens", tokens)
		},
	},
)
