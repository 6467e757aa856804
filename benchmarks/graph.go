package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// newGraph is a frontend with a prefill and a decode worker, of some version.
func newGraph(i int, version string) *v1alpha1.DynamoGraphDeployment {
	container := func(args ...string) *v1alpha1.ExtraPodSpec {
		c := corev1.Container{Image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:" + version}
		if len(args) > 0 {
			c.Command, c.Args = []string{"python3", "-m", "dynamo.vllm"}, append([]string{"--model", "Qwen/Qwen3-0.6B"}, args[1:]...)
		}
		return &v1alpha1.ExtraPodSpec{MainContainer: &c}
	}
	gpu := &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	one := int32(1)
	return &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("graph-%05d", i)},
		Spec: v1alpha1.DynamoGraphDeploymentSpec{
			BackendFramework: "vllm",
			Services: map[string]*v1alpha1.SharedSpec{
				"Frontend": {ComponentType: "frontend", Replicas: &one, ExtraPodSpec: container()},
				"decode":   {ComponentType: "worker", SubComponentType: "decode", Replicas: &one, Resources: gpu, ExtraPodSpec: container("decode")},
				"prefill":  {ComponentType: "worker", SubComponentType: "prefill", Replicas: &one, Resources: gpu, ExtraPodSpec: container("prefill", "--is-prefill-worker")},
			},
		},
	}
}

// childKinds are the kinds that become of a graph of Deployments.
var childKinds = []schema.GroupVersionKind{
	v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
}

// children waits until every Deployment and Service of every graph is there in
// its version, and with them what came before them. It follows Deployments
// rather than asking again and again, which would be most of what the API server
// does.
func (s *stage) children(ctx context.Context, namespace string, count int, version string) error {
	missing := count * services
	seen := map[string]bool{}
	for missing > 0 {
		follow, err := s.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(namespace))
		if err != nil {
			return err
		}
		for e := range follow.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok && !seen[d.Name] && runs(d, version) {
				seen[d.Name] = true
				missing--
			}
			if missing == 0 {
				break
			}
		}
		follow.Stop()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d Deployments do not run version %s: %w", missing, version, err)
		}
	}
	return s.until(ctx, "all Services", func(ctx context.Context) error {
		found, err := s.count(ctx, namespace, corev1.SchemeGroupVersion.WithKind("Service"))
		if err == nil && found < count*services {
			err = fmt.Errorf("%d of %d Services", found, count*services)
		}
		return err
	})
}

func runs(d *appsv1.Deployment, version string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Image == "nvcr.io/nvidia/ai-dynamo/vllm-runtime:"+version
	})
}

// objects are the graphs of a namespace and what they own.
func (s *stage) objects(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range append([]schema.GroupVersionKind{v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment)}, childKinds...) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if object := &list.Items[i]; kind.Kind == v1alpha1.KindDynamoGraphDeployment || metav1.GetControllerOfNoCopy(object) != nil {
				all = append(all, *object)
			}
		}
	}
	return all, nil
}

// limit is what a bare client needs to write objects to a fresh cluster of the
// same kind, where no operator is: no more can be asked of one.
func limit(ctx context.Context, bin string, size scale, all []unstructured.Unstructured, write write) (bareResult, error) {
	s, err := setUp(ctx, bin, size.controllers)
	if err != nil {
		return bareResult{}, err
	}
	defer s.tearDown()
	for _, first := range firstOfEachKind(all) {
		if err := write(ctx, s.client, copyTo(elsewhere, &first)); err != nil {
			return bareResult{}, fmt.Errorf("warm up: %w", err)
		}
	}
	var twins []*unstructured.Unstructured
	for i := range all {
		twins = append(twins, copyTo(namespace, &all[i]))
	}
	before, err := s.serverCPU(ctx)
	if err != nil {
		return bareResult{}, err
	}
	begin := time.Now()
	if err := each(ctx, len(twins), func(ctx context.Context, i int) error { return write(ctx, s.client, twins[i]) }); err != nil {
		return bareResult{}, err
	}
	took := time.Since(begin)
	after, err := s.serverCPU(ctx)
	return bareResult{Objects: len(twins), Wall: took, Server: after - before}, err
}

func firstOfEachKind(all []unstructured.Unstructured) []unstructured.Unstructured {
	return slices.CompactFunc(slices.Clone(all), func(a, b unstructured.Unstructured) bool { return a.GetKind() == b.GetKind() })
}

// write is a way to make an object.
type write func(context.Context, client.Client, *unstructured.Unstructured) error

// post and patch are the two ways. The operator patches, so that fields of
// others stay theirs.
func post(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	return c.Create(ctx, object)
}

func patch(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("bare-client"), client.ForceOwnership)
}

// copyTo is an object as somebody would write it into another namespace.
func copyTo(namespace string, object *unstructured.Unstructured) *unstructured.Unstructured {
	twin := &unstructured.Unstructured{Object: map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind()}}
	twin.SetName(object.GetName())
	twin.SetNamespace(namespace)
	twin.SetLabels(object.GetLabels())
	for _, part := range []string{"spec", "rules", "roleRef", "subjects"} {
		if content, found := object.Object[part]; found {
			twin.Object[part] = content
		}
	}
	unstructured.RemoveNestedField(twin.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(twin.Object, "spec", "clusterIPs")
	return twin
}
