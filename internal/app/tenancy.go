package app

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/tenancy"
	"github.com/dynamo-operator/dynamo-operator/internal/version"
)

// addTenancy claims the namespaces of an operator that has some.
func addTenancy(_ context.Context, p *parts) error {
	if p.config.ClusterWide() || !p.config.Tenancy.Claim {
		return nil
	}
	direct, err := client.New(p.GetConfig(), client.Options{Scheme: p.GetScheme(), Mapper: p.GetRESTMapper(), HTTPClient: p.GetHTTPClient()})
	if err != nil {
		return err
	}
	return p.Add(&tenancy.Holder{
		Direct: direct, Namespaces: p.config.Namespaces,
		Identity: "namespace-restricted-operator-" + version.Short(),
		Duration: p.config.Tenancy.Duration.Duration, Renew: p.config.Tenancy.Renew.Duration,
		Clock: clock.RealClock{},
	})
}

// claims reports whether the operator has to ask whose a namespace is.
func (p *parts) claims() bool { return p.config.ClusterWide() && p.config.Tenancy.Claim }

// gate has a reconciler of a kind work only in namespaces that are ours.
func (p *parts) gate(kind client.Object, next reconcile.Reconciler) reconcile.Reconciler {
	if !p.claims() || conditionsOf(kind) == nil {
		return next
	}
	return &tenancy.Gate{
		Client: p.GetClient(), Covers: p.config.Covers, Clock: clock.RealClock{}, Next: next,
		Kind: func() (client.Object, *[]metav1.Condition) {
			object := kind.DeepCopyObject().(client.Object)
			return object, conditionsOf(object)
		},
	}
}

// followClaims wakes the objects of a namespace whose owner changes.
func (p *parts) followClaims(w *watched, b *builder.Builder) *builder.Builder {
	if !p.claims() {
		return b
	}
	return b.Watches(&coordinationv1.Lease{}, w.neighbours(p.GetClient()), builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := tenancy.Read(e.ObjectOld.(*coordinationv1.Lease)), tenancy.Read(e.ObjectNew.(*coordinationv1.Lease))
			renewed := e.ObjectNew.(*coordinationv1.Lease).Spec.RenewTime
			return was.Holder != is.Holder || renewed == nil || !was.Live(renewed.Time)
		},
	}))
}

// claimStore holds the Leases of tenancy alone: nodes have one each.
func claimStore() cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, tenancy.LeaseName)}
}

// conditionsOf are the conditions of an object of ours; nil if its kind has none.
func conditionsOf(object client.Object) *[]metav1.Condition {
	switch o := object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		return &o.Status.Conditions
	case *v1alpha1.DynamoComponentDeployment:
		return &o.Status.Conditions
	case *v1alpha1.DynamoModel:
		return &o.Status.Conditions
	case *v1alpha1.DynamoGraphDeploymentRequest:
		return &o.Status.Conditions
	case *v1alpha1.DynamoGraphDeploymentScalingAdapter:
		return &o.Status.Conditions
	default:
		return nil
	}
}
