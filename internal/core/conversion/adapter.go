package conversion

import (
	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// AdapterToBeta turns a scaling adapter into v1beta1, which renames one field.
func AdapterToBeta(in *v1alpha1.DynamoGraphDeploymentScalingAdapter) *v1beta1.DynamoGraphDeploymentScalingAdapter {
	in = in.DeepCopy()
	out := &v1beta1.DynamoGraphDeploymentScalingAdapter{
		ObjectMeta: in.ObjectMeta,
		Spec: v1beta1.DynamoGraphDeploymentScalingAdapterSpec{
			Replicas: in.Spec.Replicas,
			DGDRef:   v1beta1.GraphComponentRef{Name: in.Spec.DGDRef.Name, ComponentName: in.Spec.DGDRef.ServiceName},
		},
		Status: v1beta1.DynamoGraphDeploymentScalingAdapterStatus(in.Status),
	}
	out.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeploymentScalingAdapter))
	return out
}

// AdapterToAlpha turns a scaling adapter into v1alpha1.
func AdapterToAlpha(in *v1beta1.DynamoGraphDeploymentScalingAdapter) *v1alpha1.DynamoGraphDeploymentScalingAdapter {
	in = in.DeepCopy()
	out := &v1alpha1.DynamoGraphDeploymentScalingAdapter{
		ObjectMeta: in.ObjectMeta,
		Spec: v1alpha1.DynamoGraphDeploymentScalingAdapterSpec{
			Replicas: in.Spec.Replicas,
			DGDRef:   v1alpha1.GraphServiceRef{Name: in.Spec.DGDRef.Name, ServiceName: in.Spec.DGDRef.ComponentName},
		},
		Status: v1alpha1.DynamoGraphDeploymentScalingAdapterStatus(in.Status),
	}
	out.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeploymentScalingAdapter))
	return out
}
