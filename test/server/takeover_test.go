package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// TestATakeoverKeepsPodsWhoseCommandHasAFlagThatWeAddAsWell: the original operator
// repeats a flag that the user gives. A command line without the repetition would
// replace every pod of a group that runs.
func TestATakeoverKeepsPodsWhoseCommandHasAFlagThatWeAddAsWell(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	users := strings.Fields("--model m --tensor-parallel-size 1 --data-parallel-size 16 --data-parallel-hybrid-lb")
	dgd := w.graph("g", "decode")
	decode := dgd.Spec.Services["decode"]
	decode.Multinode = &v1alpha1.Multinode{NodeCount: 2}
	decode.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "8"}}
	decode.ExtraPodSpec.MainContainer.Command = strings.Fields("python3 -m dynamo.vllm")
	decode.ExtraPodSpec.MainContainer.Args = users
	w.create(dgd)
	set := exists(w, &lwsv1.LeaderWorkerSet{}, "g-decode-0")
	w.stop(o)

	// What the original leaves, as it was recorded.
	const theirs = "--data-parallel-hybrid-lb --data-parallel-size-local 8 --data-parallel-start-rank %s --data-parallel-address %s --data-parallel-rpc-port 13445"
	flags := func(rank, leader string) string {
		return strings.Replace(strings.Replace(theirs, "%s", rank, 1), "%s", leader, 1)
	}
	main := func(template *corev1.PodTemplateSpec) *corev1.Container { return &template.Spec.Containers[0] }
	main(set.Spec.LeaderWorkerTemplate.LeaderTemplate).Args = slices.Concat(users, strings.Fields(flags("0", "$(LWS_LEADER_ADDRESS)")))
	main(&set.Spec.LeaderWorkerTemplate.WorkerTemplate).Args = []string{
		"exec python3 -m dynamo.vllm " + strings.Join(users, " ") + " " + flags("$((8 * LWS_WORKER_INDEX))", "$LWS_LEADER_ADDRESS"),
	}
	if err := cluster.Client.Update(w.ctx, set, client.FieldOwner("manager")); err != nil {
		t.Fatal(err)
	}

	w.operate(silent)
	w.merge(dgd, `{"spec":{"services":{"decode":{"replicas":2}}}}`)
	exists(w, &lwsv1.LeaderWorkerSet{}, "g-decode-1") // the first was looked at before
	if now := get(w, &lwsv1.LeaderWorkerSet{}, "g-decode-0"); now.Generation != set.Generation {
		t.Errorf("the command line of a running group changed:\nleader %q\nworker %q", main(now.Spec.LeaderWorkerTemplate.LeaderTemplate).Args, main(&now.Spec.LeaderWorkerTemplate.WorkerTemplate).Args)
	}
}

// TestATakeoverKeepsWorkersThatAreNamedAfterTheirGeneration: the original's 1.x puts a
// hash into the names of workers, and names owners as v1beta1. Ours goes on with those
// very objects: others would be a second set of GPUs.
func TestATakeoverKeepsWorkersThatAreNamedAfterTheirGeneration(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	dgd := w.graph("g", "Frontend", "decode", "wide")
	dgd.Annotations = map[string]string{v1alpha1.AnnotationOriginVersion: "1.4.1"}
	dgd.Spec.Services["Frontend"].ComponentType = v1alpha1.ComponentTypeFrontend
	wide := dgd.Spec.Services["wide"]
	wide.Multinode = &v1alpha1.Multinode{NodeCount: 2}
	wide.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	wide.ExtraPodSpec.MainContainer.Command = strings.Fields("python3 -m dynamo.vllm")
	wide.ExtraPodSpec.MainContainer.Args = strings.Fields("--model m --tensor-parallel-size 2")
	w.create(dgd)
	for _, name := range []string{"g-frontend", "g-decode"} {
		exists(w, &appsv1.Deployment{}, name)
		exists(w, &corev1.Service{}, name)
	}
	exists(w, &lwsv1.LeaderWorkerSet{}, "g-wide-0")
	exists(w, &corev1.Service{}, "g-wide")
	w.stop(o)

	hash := get(w, dgd, "g").Annotations[v1alpha1.AnnotationGeneration]
	if hash == "" {
		t.Fatalf("no generation: %v", dgd.Annotations)
	}
	for service, suffix := range map[string]string{"g-frontend": "", "g-decode": "-" + hash, "g-wide": "-" + hash} {
		owner := w.leaveComponent(service, service+suffix, dgd)
		left := func(object client.Object, name string) {
			w.leave(object, name, owner)
		}
		left(get(w, &corev1.Service{}, service), service+suffix)
		if service == "g-wide" {
			left(get(w, &lwsv1.LeaderWorkerSet{}, "g-wide-0"), service+suffix+"-0")
			continue
		}
		deployment := get(w, &appsv1.Deployment{}, service)
		deployment.Spec.Selector.MatchLabels[v1alpha1.LabelSelector] = service + suffix
		deployment.Spec.Template.Labels[v1alpha1.LabelSelector] = service + suffix
		left(deployment, service+suffix)
	}
	w.merge(dgd, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null,%q:null,%q:null}}}`, v1alpha1.AnnotationRuntimeContract,
		v1alpha1.AnnotationRuntimeContractChoice, v1alpha1.AnnotationWorkloadProvider, v1alpha1.AnnotationWorkloadChoice))
	running := map[string]client.Object{
		"g-frontend":            get(w, &appsv1.Deployment{}, "g-frontend"),
		"g-decode-" + hash:      get(w, &appsv1.Deployment{}, "g-decode-"+hash),
		"g-wide-" + hash + "-0": get(w, &lwsv1.LeaderWorkerSet{}, "g-wide-"+hash+"-0"),
	}

	w.operate(silent)
	for name, before := range running {
		now := before.DeepCopyObject().(client.Object)
		w.eventually(name+" to be ours", func(ctx context.Context) error {
			if err := cluster.Client.Get(ctx, w.key(name), now); err != nil {
				return err
			}
			if owner := metav1.GetControllerOf(now); owner.APIVersion != v1alpha1.SchemeGroupVersion.String() {
				return fmt.Errorf("it is of %v", owner)
			}
			if slices.ContainsFunc(now.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "manager" && e.Subresource == "" }) {
				return errors.New("it has fields of the earlier operator")
			}
			return nil
		})
		if now.GetUID() != before.GetUID() || now.GetGeneration() != before.GetGeneration() {
			t.Errorf("%s was %s, generation %d, and is %s, generation %d: pods restart", name, before.GetUID(), before.GetGeneration(), now.GetUID(), now.GetGeneration())
		}
	}
	w.merge(dgd, `{"spec":{"services":{"decode":{"replicas":3},"wide":{"replicas":2}}}}`)
	w.eventually("the worker that was taken over to grow", func(ctx context.Context) error {
		decode, wide := &appsv1.Deployment{}, &lwsv1.LeaderWorkerSet{}
		if err := errors.Join(cluster.Client.Get(ctx, w.key("g-decode-"+hash), decode), cluster.Client.Get(ctx, w.key("g-wide-"+hash+"-0"), wide)); err != nil {
			return err
		}
		if *decode.Spec.Replicas != 3 || *wide.Spec.Replicas != 2 {
			return fmt.Errorf("%d and %d replicas", *decode.Spec.Replicas, *wide.Spec.Replicas)
		}
		return nil
	})
	for name, second := range map[string]client.Object{
		"g-decode": &v1alpha1.DynamoComponentDeployment{}, "g-wide": &v1alpha1.DynamoComponentDeployment{}, "g-wide-0": &lwsv1.LeaderWorkerSet{},
	} {
		if err := cluster.Client.Get(w.ctx, w.key(name), second); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s beside the one that runs: %v", second, name, err)
		}
	}
	var deployments appsv1.DeploymentList
	if err := cluster.Client.List(w.ctx, &deployments, client.InNamespace(w.namespace)); err != nil || len(deployments.Items) != 2 {
		t.Errorf("%d Deployments, %v", len(deployments.Items), err)
	}
}

// leave replaces an object by what the original's 1.x would have left of it: written
// under its manager's name, with an owner of v1beta1, and perhaps another name.
func (w world) leave(object client.Object, name string, owner client.Object) client.Object {
	w.Helper()
	left := object.DeepCopyObject().(client.Object)
	left.SetName(name)
	left.SetUID("")
	left.SetResourceVersion("")
	left.SetManagedFields(nil)
	left.SetOwnerReferences(slices.Clone(object.GetOwnerReferences()))
	for i := range left.GetOwnerReferences() {
		ref := &left.GetOwnerReferences()[i]
		ref.APIVersion = v1beta1.SchemeGroupVersion.String()
		ref.Name, ref.UID = owner.GetName(), owner.GetUID()
	}
	if s, ok := left.(*corev1.Service); ok {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
	}
	w.delete(object)
	w.gone(object.DeepCopyObject().(client.Object), object.GetName())
	if err := cluster.Client.Create(w.ctx, left, client.FieldOwner("manager")); err != nil {
		w.Fatalf("leave %T %s: %v", left, name, err)
	}
	return left
}

// TestATakeoverReplacesNoPodUntilItsGraphChanges: ours writes some templates in other
// words than the original, and that alone loads no model again.
func TestATakeoverReplacesNoPodUntilItsGraphChanges(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	dgd := w.graph("g", "decode", "plain", "wide")
	dgd.Annotations = map[string]string{v1alpha1.AnnotationOriginVersion: "1.4.1"}
	wide := dgd.Spec.Services["wide"]
	wide.Multinode = &v1alpha1.Multinode{NodeCount: 2}
	wide.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	wide.ExtraPodSpec.MainContainer.Command = strings.Fields("python3 -m dynamo.vllm")
	wide.ExtraPodSpec.MainContainer.Args = strings.Fields("--model m --tensor-parallel-size 2")
	w.create(dgd)
	decode, group := exists(w, &appsv1.Deployment{}, "g-decode"), exists(w, &lwsv1.LeaderWorkerSet{}, "g-wide-0")
	w.stop(o)

	theirs := corev1.EnvVar{Name: "THEIRS", Value: "1"}
	leave := func(object client.Object, template *corev1.PodTemplateSpec, service string) {
		template.Spec.Containers[0].Env = append(template.Spec.Containers[0].Env, theirs)
		template.Spec.Containers[0].StartupProbe = nil
		w.leave(object, object.GetName(), w.leaveComponent(service, service, dgd))
	}
	leave(decode, &decode.Spec.Template, "g-decode")
	plain := exists(w, &appsv1.Deployment{}, "g-plain")
	w.leave(plain, plain.Name, w.leaveComponent(plain.Name, plain.Name, dgd))
	leave(group, &group.Spec.LeaderWorkerTemplate.WorkerTemplate, "g-wide")
	w.leaveGraph(dgd)
	left := map[string]client.Object{"g-decode": get(w, &appsv1.Deployment{}, "g-decode"), "g-wide-0": get(w, &lwsv1.LeaderWorkerSet{}, "g-wide-0")}

	ours := func(name string, object client.Object) {
		t.Helper()
		w.eventually(name+" to be ours", func(ctx context.Context) error {
			if err := cluster.Client.Get(ctx, w.key(name), object); err != nil {
				return err
			}
			if owner := metav1.GetControllerOf(object); owner.APIVersion != v1alpha1.SchemeGroupVersion.String() {
				return fmt.Errorf("it is of %v", owner)
			}
			return nil
		})
	}
	same := func(now *appsv1.Deployment) {
		t.Helper()
		if diff := cmp.Diff(left["g-decode"].(*appsv1.Deployment).Spec.Template, now.Spec.Template); diff != "" {
			t.Errorf("pods of g-decode restart:\n%s", diff)
		}
	}
	o = w.operate(silent)
	adopted, groups := &appsv1.Deployment{}, &lwsv1.LeaderWorkerSet{}
	ours("g-decode", adopted)
	same(adopted)
	ours("g-wide-0", groups)
	if groups.Generation != left["g-wide-0"].GetGeneration() {
		t.Error("pods of g-wide-0 restart")
	}
	needless := &appsv1.Deployment{}
	ours("g-plain", needless)
	w.eventually("what is as ours to be retained no longer", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("g-plain"), needless); err != nil || needless.Annotations[v1alpha1.AnnotationAdoptedTemplates] == "" {
			return err
		}
		return fmt.Errorf("annotations %v", needless.Annotations)
	})
	w.quiet()
	w.stop(o)

	o = w.operate(silent) // which has adopted nothing itself
	w.merge(dgd, `{"spec":{"services":{"decode":{"replicas":3}}}}`)
	grown := &appsv1.Deployment{}
	w.eventually("what was taken over to grow", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("g-decode"), grown); err != nil || *grown.Spec.Replicas == 3 {
			return err
		}
		return fmt.Errorf("%d replicas", *grown.Spec.Replicas)
	})
	same(grown)
	w.merge(grown, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":7}}}}`)
	w.eventually("what somebody changed by hand to be ours", func(ctx context.Context) error {
		now := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, w.key("g-decode"), now); err != nil {
			return err
		}
		if slices.Contains(now.Spec.Template.Spec.Containers[0].Env, theirs) || *now.Spec.Template.Spec.TerminationGracePeriodSeconds == 7 {
			return fmt.Errorf("env %v, grace %d", now.Spec.Template.Spec.Containers[0].Env, *now.Spec.Template.Spec.TerminationGracePeriodSeconds)
		}
		return nil
	})
	w.stop(o)

	w.operate(silent)
	w.merge(dgd, `{"spec":{"services":{"wide":{"envs":[{"name":"CHANGED","value":"1"}]}}}}`)
	w.eventually("the change to bring our template", func(ctx context.Context) error {
		now := &lwsv1.LeaderWorkerSet{}
		if err := cluster.Client.Get(ctx, w.key("g-wide-0"), now); err != nil {
			return err
		}
		if slices.Contains(now.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Env, theirs) || now.Annotations[v1alpha1.AnnotationAdoptedTemplates] != "" {
			return fmt.Errorf("env %v, annotations %v", now.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Env, now.Annotations)
		}
		return nil
	})
}

// TestATakeoverReplacesNoPodOfAComponentWithoutAGraph: nobody tells it under which
// contract it was made, but its pods.
func TestATakeoverReplacesNoPodOfAComponentWithoutAGraph(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	alone := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "alone", Namespace: w.namespace, Annotations: map[string]string{v1alpha1.AnnotationRuntimeContract: "1.x"},
	}}
	alone.Spec.ComponentType = v1alpha1.ComponentTypeWorker
	alone.Spec.ExtraPodSpec = &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "r/vllm:1.2.0", Command: []string{"python3", "-m", "dynamo.vllm"}}}
	w.create(alone)
	deployment := exists(w, &appsv1.Deployment{}, "alone")
	w.eventually("the component to be reported on", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("alone"), alone); err != nil || alone.Status.ObservedGeneration == alone.Generation {
			return err
		}
		return errors.New("no report")
	})
	w.stop(o)

	// What the original leaves: no record, its own status, and another template.
	w.merge(alone, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}}}`, v1alpha1.AnnotationRuntimeContract, v1alpha1.AnnotationRuntimeContractChoice))
	alone = get(w, &v1alpha1.DynamoComponentDeployment{}, "alone")
	alone.Status = v1alpha1.DynamoComponentDeploymentStatus{ObservedGeneration: alone.Generation}
	if err := cluster.Client.Status().Update(w.ctx, alone, client.FieldOwner("manager")); err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Template.Spec.Containers[0].StartupProbe = nil
	w.leave(deployment, "alone", alone)
	left := get(w, &appsv1.Deployment{}, "alone")

	w.operate(silent)
	now := &appsv1.Deployment{}
	w.eventually("the workload to be ours", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("alone"), now); err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(now); owner.APIVersion != v1alpha1.SchemeGroupVersion.String() {
			return fmt.Errorf("it is of %v", owner)
		}
		return nil
	})
	if diff := cmp.Diff(left.Spec.Template, now.Spec.Template); diff != "" {
		t.Errorf("pods restart:\n%s", diff)
	}

	w.merge(alone, `{"spec":{"envs":[{"name":"CHANGED","value":"1"}]}}`)
	w.eventually("the change to bring our template", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("alone"), now); err != nil || now.Spec.Template.Spec.Containers[0].StartupProbe != nil {
			return err
		}
		return errors.New("it is theirs")
	})
}

// leaveComponent replaces a component by what the original would have left of it.
func (w world) leaveComponent(was, name string, dgd *v1alpha1.DynamoGraphDeployment) client.Object {
	w.Helper()
	dcd := get(w, &v1alpha1.DynamoComponentDeployment{}, was)
	for _, ours := range []string{v1alpha1.AnnotationRuntimeContract, v1alpha1.AnnotationVLLMExecutor} {
		delete(dcd.Annotations, ours)
	}
	dcd.Finalizers = []string{v1alpha1.Finalizer}
	return w.leave(dcd, name, dgd)
}

// leaveGraph makes a graph one that the original's 1.x has carried out.
func (w world) leaveGraph(dgd *v1alpha1.DynamoGraphDeployment) {
	w.Helper()
	w.merge(dgd, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null,%q:null,%q:null}}}`, v1alpha1.AnnotationRuntimeContract,
		v1alpha1.AnnotationRuntimeContractChoice, v1alpha1.AnnotationWorkloadProvider, v1alpha1.AnnotationWorkloadChoice))
	now := get(w, &v1alpha1.DynamoGraphDeployment{}, dgd.Name)
	now.Status = v1alpha1.DynamoGraphDeploymentStatus{State: v1alpha1.GraphStateSuccessful, ObservedGeneration: now.Generation}
	if err := cluster.Client.Status().Update(w.ctx, now, client.FieldOwner("manager")); err != nil {
		w.Fatal(err)
	}
}

// TestATakeoverCarriesOutWhatNobodyHas: a graph that was changed while there was no
// operator is not as the original left it.
func TestATakeoverCarriesOutWhatNobodyHas(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	dgd := w.graph("g", "decode")
	dgd.Annotations = map[string]string{v1alpha1.AnnotationOriginVersion: "1.4.1"}
	w.create(dgd)
	decode := exists(w, &appsv1.Deployment{}, "g-decode")
	w.stop(o)
	w.leave(decode, "g-decode", w.leaveComponent("g-decode", "g-decode", dgd))
	w.leaveGraph(dgd)
	w.merge(dgd, `{"spec":{"services":{"decode":{"envs":[{"name":"CHANGED","value":"1"}]}}}}`)
	w.operate(silent)
	w.eventually("the change", func(ctx context.Context) error {
		now := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, w.key("g-decode"), now); err != nil {
			return err
		}
		if !slices.Contains(now.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "CHANGED", Value: "1"}) {
			return fmt.Errorf("env %v", now.Spec.Template.Spec.Containers[0].Env)
		}
		return nil
	})
}
