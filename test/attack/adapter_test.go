package attack

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// scaled is a graph with an adapter for its service b.
const scaled = `{services: {a: {replicas: 1, ` + image + `}, b: {replicas: 1, scalingAdapter: {enabled: true}, ` + image + `}}}`

func adapter(ns, name, graph, service string) *v1alpha1.DynamoGraphDeploymentScalingAdapter {
	a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: meta(ns, name)}
	a.Spec.Replicas, a.Spec.DGDRef = 3, v1alpha1.GraphServiceRef{Name: graph, ServiceName: service}
	return a
}

// replicas is nil once a Deployment is to have so many.
func (s *scene) replicas(ns, name string, want int32) func(context.Context) error {
	return func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, d); err != nil {
			return err
		}
		if *d.Spec.Replicas != want {
			return fmt.Errorf("%d replicas", *d.Spec.Replicas)
		}
		return nil
	}
}

// inactive is nil once an adapter says that it decides nothing.
func (s *scene) inactive(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, a); err != nil {
			return err
		}
		for _, c := range a.Status.Conditions {
			if c.Type == v1alpha1.ConditionActive && c.Status == "False" && c.ObservedGeneration == a.Generation {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", a.Status.Conditions)
	}
}

var _ = add(
	attack{
		name: "an adapter that the operator did not make scales a service", heldBy: []barrier{design("a graph asks the adapters that it owns, by their names")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", scaled))
			s.ready(ns, "g")
			mallory := s.tenant(ns, "admin")
			for _, service := range []string{"a", "b"} {
				if err := mallory.Create(s.ctx, adapter(ns, "rogue-"+service, "g", service)); err != nil {
					s.Fatal(err)
				}
			}
			later := s.laterOnes(ns)
			if s.either("the adapters to be judged", func(ctx context.Context) error {
				if s.replicas(ns, "g-a", 3)(ctx) == nil {
					return nil
				}
				return s.replicas(ns, "g-b", 3)(ctx)
			}, func(ctx context.Context) error {
				if err := errors.Join(s.inactive(ns, "rogue-a")(ctx), s.inactive(ns, "rogue-b")(ctx)); err != nil {
					return err
				}
				return later(ctx)
			}) {
				return gotThrough("a service has its replicas")
			}
			return held("the adapters say that they are inactive")
		},
	},
	attack{
		name: "an adapter scales a graph of another namespace", heldBy: []barrier{design("an adapter names a graph without a namespace")},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			s.create(graphOf(victim, "g", scaled))
			s.ready(victim, "g")
			mallory := s.tenant(ns, "admin")
			for _, name := range []string{"g", victim + "/g"} {
				a := adapter(ns, "rogue", name, "b")
				a.Labels = map[string]string{v1alpha1.LabelGraphName: "g", "nvidia.com/dynamo-namespace": victim}
				if err := mallory.Create(s.ctx, a); err != nil {
					s.Logf("%s: %v", name, err)
				}
			}
			later := s.laterOnes(victim)
			if s.either("the adapter to be judged", s.replicas(victim, "g-b", 3), func(ctx context.Context) error {
				if err := s.inactive(ns, "rogue")(ctx); err != nil {
					return err
				}
				return later(ctx)
			}) {
				return gotThrough("the service has its replicas")
			}
			return held("the adapter says that it is inactive")
		},
	},
)
