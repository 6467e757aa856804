package tenancy

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,roleName=dynamo-operator-namespace-scope
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=dynamo-operator-namespace-scope,verbs=get;update;delete,roleName=dynamo-operator-namespace-scope
// +kubebuilder:rbac:groups=nvidia.com,resources=namespacescopes,verbs=hold,roleName=dynamo-operator-namespace-scope

// Holder keeps the Leases of an operator for single namespaces, from its leader.
type Holder struct {
	Direct     client.Client
	Namespaces []string
	Identity   string
	Duration   time.Duration
	Renew      time.Duration
	Clock      clock.WithTicker
}

// NeedLeaderElection is true: the Lease is the leader's, so a replica that ends
// does not end the claim of the others.
func (h *Holder) NeedLeaderElection() bool { return true }

// Start renews until ctx ends, then gives the namespaces back. An operator that
// cannot renew stops: from the end of its claim on another does its work.
func (h *Holder) Start(ctx context.Context) error {
	renewed := h.Clock.Now()
	for {
		err := h.renewAll(ctx)
		switch now := h.Clock.Now(); {
		case err == nil:
			renewed = now
		case now.Sub(renewed) > h.Duration-h.Renew:
			return fmt.Errorf("hold namespaces: %w", err)
		default:
			log.FromContext(ctx).Error(err, "renew the claim to namespaces")
		}
		select {
		case <-h.Clock.After(h.Renew):
		case <-ctx.Done():
			return h.release(context.WithoutCancel(ctx))
		}
	}
}

func (h *Holder) renewAll(ctx context.Context) error {
	var errs []error
	for _, namespace := range h.Namespaces {
		errs = append(errs, h.renew(ctx, namespace))
	}
	return errors.Join(errs...)
}

func (h *Holder) renew(ctx context.Context, namespace string) error {
	now := metav1.NewMicroTime(h.Clock.Now())
	lease := &coordinationv1.Lease{}
	err := h.Direct.Get(ctx, types.NamespacedName{Namespace: namespace, Name: LeaseName}, lease)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read Lease %s/%s: %w", namespace, LeaseName, err)
	}
	if claim := Read(lease); claim.Holder != h.Identity && claim.Live(now.Time) {
		return fmt.Errorf("namespace %s is held by %s", namespace, claim.Holder)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != h.Identity {
		lease.Spec.AcquireTime = &now
	}
	lease.Namespace, lease.Name = namespace, LeaseName
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &h.Identity, &now
	lease.Spec.LeaseDurationSeconds = new(int32(h.Duration / time.Second))
	if missing {
		err = h.Direct.Create(ctx, lease)
	} else {
		err = h.Direct.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("renew Lease %s/%s: %w", namespace, LeaseName, err)
	}
	return nil
}

// release ends the claims, so that whoever comes next need not wait.
func (h *Holder) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var errs []error
	for _, namespace := range h.Namespaces {
		lease := &coordinationv1.Lease{}
		err := h.Direct.Get(ctx, types.NamespacedName{Namespace: namespace, Name: LeaseName}, lease)
		if err == nil && Read(lease).Holder == h.Identity {
			err = h.Direct.Delete(ctx, lease, client.Preconditions{ResourceVersion: &lease.ResourceVersion})
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return errors.Join(errs...)
}
