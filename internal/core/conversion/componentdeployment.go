package conversion

import (
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// Names of the field that is filled in from the object's name.
const (
	absentServiceName = "serviceName"
	absentName        = "name"
)

// ComponentToBeta turns a component into v1beta1.
func ComponentToBeta(in *v1alpha1.DynamoComponentDeployment) (*v1beta1.DynamoComponentDeployment, []string) {
	return componentToBeta(in.DeepCopy())
}

func componentToBeta(in *v1alpha1.DynamoComponentDeployment) (*v1beta1.DynamoComponentDeployment, []string) {
	var ignored []string
	written := WrittenAs(in)
	payload, present, readable := take[v1beta1.DynamoComponentDeploymentSpec](&in.ObjectMeta, v1alpha1.AnnotationComponentPayload)
	if present && !readable {
		ignored = append(ignored, "payload")
	}
	out := &v1beta1.DynamoComponentDeployment{ObjectMeta: in.ObjectMeta, Status: v1beta1.DynamoComponentDeploymentStatus{
		ObservedGeneration: in.Status.ObservedGeneration, Conditions: in.Status.Conditions, PodSelector: in.Status.PodSelector,
	}}
	out.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))
	if s := in.Status.Service; s != nil {
		status := upReplicas(*s)
		out.Status.Component = &status
	}
	back := envelope[v1alpha1.DynamoComponentDeploymentSpec]{}
	name := in.Spec.ServiceName
	if name == "" {
		name = in.Name
		// A component that was written as v1beta1 without a name is not one
		// that was written as v1alpha1 without one.
		if slices.Contains(payload.Absent, absentName) {
			name = ""
		} else if name != "" {
			back.Absent = []string{absentServiceName}
		}
	}
	service := in.Spec.SharedSpec
	service.ServiceName = ""
	c := up(name, &service)
	plain := down(&c)
	restored, whole := restoreComponent(&c, plain, &payload.Spec.Component)
	if !whole {
		ignored = append(ignored, "payload")
	}
	out.Spec = v1beta1.DynamoComponentDeploymentSpec{BackendFramework: string(in.Spec.BackendFramework), Component: *restored}
	saved, special := remember(&service, plain)
	if special {
		back.Spec.SharedSpec = *saved
	}
	if written == Alpha || special || back.Absent != nil {
		put(&out.ObjectMeta, v1alpha1.AnnotationComponentPayload, back)
		annotate(&out.ObjectMeta, v1alpha1.AnnotationWrittenAs, written)
	}
	return out, ignored
}

// ComponentToAlpha turns a component into v1alpha1.
func ComponentToAlpha(in *v1beta1.DynamoComponentDeployment) (*v1alpha1.DynamoComponentDeployment, []string) {
	return componentToAlpha(in.DeepCopy())
}

func componentToAlpha(in *v1beta1.DynamoComponentDeployment) (*v1alpha1.DynamoComponentDeployment, []string) {
	var ignored []string
	word := in.Annotations[v1alpha1.AnnotationWrittenAs]
	payload, present, readable := take[v1alpha1.DynamoComponentDeploymentSpec](&in.ObjectMeta, v1alpha1.AnnotationComponentPayload)
	if present && !readable {
		ignored = append(ignored, "payload")
	}
	out := &v1alpha1.DynamoComponentDeployment{ObjectMeta: in.ObjectMeta, Status: v1alpha1.DynamoComponentDeploymentStatus{
		ObservedGeneration: in.Status.ObservedGeneration, Conditions: in.Status.Conditions, PodSelector: in.Status.PodSelector,
	}}
	out.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))
	if s := in.Status.Component; s != nil {
		status := downReplicas(*s)
		out.Status.Service = &status
	}
	c := &in.Spec.Component
	payload.Spec.ServiceName = "" // the name is visible
	service, whole := restoreService(c, &payload.Spec.SharedSpec)
	if !whole {
		ignored = append(ignored, "payload")
	}
	home := up(c.Name, service)
	back := envelope[v1beta1.DynamoComponentDeploymentSpec]{}
	saved, special := rememberComponent(c, &home)
	written := origin(word, present, special)
	if special {
		back.Spec.Component = saved
	}
	service.ServiceName = c.Name
	switch {
	case c.Name == in.Name && slices.Contains(payload.Absent, absentServiceName):
		service.ServiceName = ""
	case c.Name == "" && in.Name != "":
		back.Absent = []string{absentName}
	}
	out.Spec = v1alpha1.DynamoComponentDeploymentSpec{BackendFramework: v1alpha1.BackendFramework(in.Spec.BackendFramework), SharedSpec: *service}
	if special || back.Absent != nil {
		put(&out.ObjectMeta, v1alpha1.AnnotationComponentPayload, back)
	}
	if written == Beta {
		annotate(&out.ObjectMeta, v1alpha1.AnnotationWrittenAs, Beta)
	}
	return out, ignored
}
