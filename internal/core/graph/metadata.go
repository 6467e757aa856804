package graph

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Recreated reports whether the user wants all pods of a component gone before new
// ones are made.
func (c Component) Recreated() bool {
	return c.ObjectAnnotations()[v1alpha1.AnnotationDeploymentStrategy] == string(appsv1.RecreateDeploymentStrategyType)
}

// PodSelector are the labels that all pods of a component have, and no others.
func PodSelector(dcd *v1alpha1.DynamoComponentDeployment) map[string]string {
	return map[string]string{
		v1alpha1.LabelGraphName: cmp.Or(ParentGraph(dcd), dcd.Name),
		v1alpha1.LabelComponent: cmp.Or(dcd.Spec.ServiceName, dcd.Name),
	}
}

// ObjectLabels are the labels of the objects made for a component: the user's,
// and the base model by which its endpoints are found.
func (c Component) ObjectLabels() map[string]string {
	labels := join(c.Labels)
	if c.Model != "" {
		labels[v1alpha1.LabelBaseModelHash] = ModelHash(c.Model)
	}
	if c.Contract == ContractV1 && c.SubType != "" {
		labels[v1alpha1.LabelSubComponentType] = c.SubType
	}
	return labels
}

// ObjectAnnotations are their annotations. Those that the user gives to pods
// stand here as well: tools that read them look at either.
func (c Component) ObjectAnnotations() map[string]string {
	annotations := join(c.Annotations, c.PodAnnotations)
	if c.Model != "" {
		annotations[v1alpha1.AnnotationBaseModel] = c.Model
	}
	return annotations
}
