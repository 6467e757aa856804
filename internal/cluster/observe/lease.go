package observe

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// ActivationLease reads the Lease by which a graph is woken; nil if it has none. One that
// another owner has, or nobody, says nothing.
func ActivationLease(ctx context.Context, reader client.Reader, dgd *v1alpha1.DynamoGraphDeployment) (*coordinationv1.Lease, error) {
	if reader == nil {
		return nil, nil
	}
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: dgd.Namespace, Name: graph.ActivationName(dgd.Name)}
	if err := reader.Get(ctx, key, lease); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			err = fmt.Errorf("look for Lease %s: %w", key, err)
		}
		return nil, err
	}
	if !metav1.IsControlledBy(lease, dgd) || lease.DeletionTimestamp != nil {
		return nil, nil
	}
	return lease, nil
}

// TrimLease keeps of a Lease what is read: whoever may write Leases can give them our
// label, and a quarter of a mebibyte of annotations.
func TrimLease(object any) (any, error) {
	if lease, ok := object.(*coordinationv1.Lease); ok && !guard.Outlines.Off() {
		declared, said := lease.Annotations[v1alpha1.AnnotationActivationDeclared]
		lease.ManagedFields, lease.Annotations = dormancy.Renewal(lease.ManagedFields), nil
		if said && len(declared) <= dormancy.MostDeclared { // anything longer is not what we wrote
			lease.Annotations = map[string]string{v1alpha1.AnnotationActivationDeclared: declared}
		}
		lease.Spec = coordinationv1.LeaseSpec{RenewTime: lease.Spec.RenewTime}
	}
	return object, nil
}
