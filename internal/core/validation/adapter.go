package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// ScalingAdapter checks a DynamoGraphDeploymentScalingAdapter on its own.
func ScalingAdapter(adapter *v1alpha1.DynamoGraphDeploymentScalingAdapter) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if adapter.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(at.Child("replicas"), adapter.Spec.Replicas, "must not be negative"))
	}
	ref := at.Child("dgdRef")
	if adapter.Spec.DGDRef.Name == "" {
		errs = append(errs, field.Required(ref.Child("name"), "names the graph"))
	} else {
		errs = append(errs, reference(adapter.Spec.DGDRef.Name, ref.Child("name"))...)
	}
	if adapter.Spec.DGDRef.ServiceName == "" {
		errs = append(errs, field.Required(ref.Child("serviceName"), "names the service that is scaled"))
	}
	return sorted(errs)
}
