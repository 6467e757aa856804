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
		Status: upAdapterStatus(in.Status),
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
		Status: downAdapterStatus(in.Status),
	}
	out.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeploymentScalingAdapter))
	return out
}

func upAdapterStatus(in v1alpha1.DynamoGraphDeploymentScalingAdapterStatus) v1beta1.DynamoGraphDeploymentScalingAdapterStatus {
	return v1beta1.DynamoGraphDeploymentScalingAdapterStatus{
		ObservedGeneration: in.ObservedGeneration,
		Replicas:           in.Replicas,
		WantedReplicas:     in.WantedReplicas,
		GrantedReplicas:    in.GrantedReplicas,
		DrainingReplicas:   in.DrainingReplicas,
		ReadyReplicas:      in.ReadyReplicas,
		StartingReplicas:   in.StartingReplicas,
		Startup:            (*v1beta1.StartupTimes)(in.Startup),
		LimitedBy:          in.LimitedBy,
		Selector:           in.Selector,
		LastScaleTime:      in.LastScaleTime,
		Conditions:         in.Conditions,
	}
}

func downAdapterStatus(in v1beta1.DynamoGraphDeploymentScalingAdapterStatus) v1alpha1.DynamoGraphDeploymentScalingAdapterStatus {
	return v1alpha1.DynamoGraphDeploymentScalingAdapterStatus{
		ObservedGeneration: in.ObservedGeneration,
		Replicas:           in.Replicas,
		WantedReplicas:     in.WantedReplicas,
		GrantedReplicas:    in.GrantedReplicas,
		DrainingReplicas:   in.DrainingReplicas,
		ReadyReplicas:      in.ReadyReplicas,
		StartingReplicas:   in.StartingReplicas,
		Startup:            (*v1alpha1.StartupTimes)(in.Startup),
		LimitedBy:          in.LimitedBy,
		Selector:           in.Selector,
		LastScaleTime:      in.LastScaleTime,
		Conditions:         in.Conditions,
	}
}
