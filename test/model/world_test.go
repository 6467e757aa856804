package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

const base = "org/base"

// world is a namespace with engines on paper.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
	pods      []*corev1.Pod
	engines   []*engine
}

var addresses atomic.Int32

// newWorld makes a namespace with pods that serve the base model, each with an
// engine behind it.
func newWorld(t *testing.T, engines int) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "model-"}}
	w := &world{T: t, ctx: ctx}
	w.create(namespace)
	w.namespace = namespace.Name
	w.eventually("the account that pods need", func() error {
		return cluster.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	t.Cleanup(func() {
		for _, e := range w.engines {
			e.server.CloseClientConnections()
			e.server.Close()
		}
		if t.Failed() {
			t.Logf("the operator said:\n%s", operator.words())
		}
	})
	for i := range engines {
		w.addPod(fmt.Sprintf("pod-%03d", i))
	}
	w.slice("all", w.pods...)
	return w
}

func (w *world) create(o client.Object) {
	w.Helper()
	if err := cluster.Client.Create(w.ctx, o); err != nil {
		w.Fatalf("create %T: %v", o, err)
	}
}

// addPod makes a pod that nobody schedules, with an address that the fabric
// leads to an engine.
func (w *world) addPod(name string) {
	w.Helper()
	n := addresses.Add(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{
			v1alpha1.LabelGraphName: "g", v1alpha1.LabelBaseModelHash: graph.ModelHash(base),
		}},
		Spec: corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "engine"}}},
	}
	w.create(pod)
	address := fmt.Sprintf("10.200.%d.%d", n/250, n%250+1)
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "test://1", Image: "engine", ImageID: "engine"}}
	if err := cluster.Client.Status().Update(w.ctx, pod); err != nil {
		w.Fatal(err)
	}
	e := newEngine()
	network.add(address, e)
	w.pods, w.engines = append(w.pods, pod), append(w.engines, e)
}

// slice makes an EndpointSlice of pods, as the model's headless Service has.
func (w *world) slice(name string, pods ...*corev1.Pod) *discoveryv1.EndpointSlice {
	w.Helper()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{
			v1alpha1.LabelBaseModelHash: graph.ModelHash(base), discoveryv1.LabelServiceName: graph.ModelService(base),
			discoveryv1.LabelManagedBy: "test",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("system"), Port: new(int32(9090))}},
	}
	for _, pod := range pods {
		s.Endpoints = append(s.Endpoints, endpoint(pod))
	}
	w.create(s)
	return s
}

func endpoint(pod *corev1.Pod) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{pod.Status.PodIP},
		Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
}

func (w *world) lora(name, adapter, uri string) *v1alpha1.DynamoModel {
	w.Helper()
	dm := &v1alpha1.DynamoModel{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.DynamoModelSpec{
			ModelName: adapter, BaseModelName: base, ModelType: v1alpha1.ModelTypeLoRA, Source: &v1alpha1.ModelSource{URI: uri},
		},
	}
	w.create(dm)
	return dm
}

func (w *world) eventually(what string, try func() error) {
	w.Helper()
	if err := cluster.Eventually(w.ctx, what, func(context.Context) error { return try() }); err != nil {
		w.Fatal(err)
	}
}

// reported waits until a model's status has so many ready endpoints.
func (w *world) reported(dm *v1alpha1.DynamoModel, ready, total int32) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d of %d endpoints of %s", ready, total, dm.Name), func() error {
		if err := cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(dm), dm); err != nil {
			return err
		}
		if s := dm.Status; s.ObservedGeneration != dm.Generation || s.ReadyEndpoints != ready || s.TotalEndpoints != total {
			return fmt.Errorf("generation %d of %d: %d of %d endpoints: %v", s.ObservedGeneration, dm.Generation, s.ReadyEndpoints, s.TotalEndpoints, s.Conditions)
		}
		if total > 0 && meta.IsStatusConditionTrue(dm.Status.Conditions, v1alpha1.ConditionEndpointsReady) != (ready == total) {
			return fmt.Errorf("conditions %v", dm.Status.Conditions)
		}
		return nil
	})
}

// holding waits until engines hold exactly the given adapters, as name=source.
func (w *world) holding(engines []*engine, want ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%d engines to hold %q", len(engines), want), func() error {
		for _, e := range engines {
			if got := e.holds(); !slices.Equal(got, want) {
				return fmt.Errorf("one holds %q", got)
			}
		}
		return nil
	})
}

func (w *world) change(dm *v1alpha1.DynamoModel, change func(*v1alpha1.DynamoModelSpec)) {
	w.Helper()
	before := dm.DeepCopy()
	change(&dm.Spec)
	if err := cluster.Client.Patch(w.ctx, dm, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// remove deletes a model and waits until it is gone.
func (w *world) remove(dm *v1alpha1.DynamoModel) {
	w.Helper()
	if err := cluster.Client.Delete(w.ctx, dm); err != nil {
		w.Fatal(err)
	}
	w.gone(dm)
}

func (w *world) gone(dm *v1alpha1.DynamoModel) {
	w.Helper()
	w.eventually(dm.Name+" to be gone", func() error {
		err := cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(dm), &v1alpha1.DynamoModel{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
}
