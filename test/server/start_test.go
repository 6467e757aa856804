package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestAServiceIsStartedAfterThoseThatItNames: a Deployment, then a group of nodes,
// then a frontend. Each says whom it waits for, and one that has started goes on
// whatever becomes of the others.
func TestAServiceIsStartedAfterThoseThatItNames(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "cache", "decode", "front", "other")
	decode, front := dgd.Spec.Services["decode"], dgd.Spec.Services["front"]
	decode.Multinode = &v1alpha1.Multinode{NodeCount: 2}
	decode.Annotations = map[string]string{v1alpha1.AnnotationStartAfter: "cache"}
	front.Annotations = map[string]string{v1alpha1.AnnotationStartAfter: "decode, other"}
	w.create(dgd)
	w.runs("g-other", 1, true) // it waits for nobody
	w.runs("g-cache", 1, false)
	w.waits("g", map[string]string{"decode": "waiting for cache to be ready", "front": "waiting for decode to be ready"})
	w.absent("g-decode", "g-front")

	w.runs("g-cache", 1, true)
	w.group("g-decode-0", 1, false)
	w.waits("g", map[string]string{"front": "waiting for decode to be ready"})
	w.absent("g-front")

	w.group("g-decode-0", 1, true)
	w.runs("g-front", 1, true)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	if made := get(w, &appsv1.Deployment{}, "g-front"); made.Annotations[v1alpha1.AnnotationStartAfter] != "" || made.Spec.Template.Annotations[v1alpha1.AnnotationStartAfter] != "" {
		t.Error("the annotation stands where a change of it would replace pods")
	}

	w.runs("g-cache", 1, false)
	w.group("g-decode-0", 1, false)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonServicesNotReady)
	w.merge(dgd, `{"spec":{"services":{"front":{"extraPodSpec":{"mainContainer":{"image":"example.com/at-rest:2"}}}}}}`)
	w.runs("g-front", 2, true)
	if services := get(w, dgd, "g").Status.Services; services["front"].Message != "" {
		t.Errorf("front was started, and says %q", services["front"].Message)
	}

	// An order that is given or taken away later writes nothing.
	w.runs("g-cache", 1, true)
	w.group("g-decode-0", 1, true)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	w.merge(dgd, `{"spec":{"services":{"front":{"annotations":null},"cache":{"annotations":{"nvidia.com/start-after":"other"}}}}}`)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	for name, generation := range map[string]int64{"g-front": 2, "g-cache": 1} {
		if dcd := get(w, &v1alpha1.DynamoComponentDeployment{}, name); dcd.Generation != generation {
			t.Errorf("component %s is at generation %d, want %d", name, dcd.Generation, generation)
		}
	}
}

// waits waits until services of a graph say whom they wait for, and the graph says
// so of them.
func (w world) waits(name string, want map[string]string) {
	w.Helper()
	w.eventually("services to wait", func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := cluster.Client.Get(ctx, w.key(name), dgd); err != nil {
			return err
		}
		for service, message := range want {
			if said := dgd.Status.Services[service].Message; said != message {
				return fmt.Errorf("%s says %q", service, said)
			}
			for _, c := range dgd.Status.Conditions {
				if c.Type == v1alpha1.ConditionReady && !strings.Contains(c.Message, service+": "+message) {
					return fmt.Errorf("condition %v", c)
				}
			}
		}
		return nil
	})
}

// absent checks that components were not made, nor anything of them.
func (w world) absent(names ...string) {
	w.Helper()
	for _, name := range names {
		for _, object := range []client.Object{&v1alpha1.DynamoComponentDeployment{}, &appsv1.Deployment{}} {
			if err := cluster.Client.Get(w.ctx, w.key(name), object); !apierrors.IsNotFound(err) {
				w.Errorf("%T %s: %v", object, name, err)
			}
		}
		if err := cluster.Client.Get(w.ctx, w.key(name+"-0"), &lwsv1.LeaderWorkerSet{}); !apierrors.IsNotFound(err) {
			w.Errorf("LeaderWorkerSet %s-0: %v", name, err)
		}
	}
}

// runs plays the controller of Deployments for one, once that has come to a
// generation: its only pod serves, or does not.
func (w world) runs(name string, generation int64, serves bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("Deployment %s at generation %d", name, generation), func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, w.key(name), d); err != nil {
			return err
		}
		if d.Generation != generation {
			return fmt.Errorf("it is at %d", d.Generation)
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1}
		if serves {
			d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 1, 1, 0
		}
		return cluster.Client.Status().Update(ctx, d)
	})
}
