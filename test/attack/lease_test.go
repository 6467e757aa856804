package attack

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// scopePolicy keeps the Lease by which an operator claims a namespace.
const scopePolicy = "dynamo-operator-namespace-scope"

func leaseIn(ns, holder string) *coordinationv1.Lease {
	now := metav1.NewMicroTime(time.Now())
	return &coordinationv1.Lease{
		ObjectMeta: meta(ns, namespacescope.LeaseName),
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: new(int32(3600))},
	}
}

// leaseHolder is a tenant who may write Leases: they are everybody's.
func leaseHolder(s *scene, ns string) client.WithWatch {
	return s.tenant(ns, "edit", s.role(allOf("coordination.k8s.io", "leases")))
}

// leftAlone is whether the operator leaves a graph to somebody else.
func (s *scene) leftAlone(ns string) bool {
	return s.either("a graph to be looked after", func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "later"}, dgd); err != nil {
			return err
		}
		if c := conditions.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionManaged); c == nil || c.Reason != v1alpha1.ReasonNamespaceOperator {
			return errors.New("it is not left to another operator")
		}
		return nil
	}, s.laterOnes(ns))
}

// onLegitimate makes the Lease of an operator for the namespace, which the tenant
// then goes for.
func onLegitimate(attempt func(s *scene, mallory client.WithWatch, ns string) error, worked func(*coordinationv1.Lease, error) bool) func(*scene) outcome {
	return func(s *scene) outcome {
		ns := s.namespace(nil)
		s.create(leaseIn(ns, "the operator of this namespace"))
		mallory := leaseHolder(s, ns)
		err := attempt(s, mallory, ns)
		lease := &coordinationv1.Lease{}
		read := s.Client.Get(s.ctx, types.NamespacedName{Namespace: ns, Name: namespacescope.LeaseName}, lease)
		if worked(lease, read) {
			return gotThrough("the Lease is now %v, %v", lease.Spec.HolderIdentity, read)
		}
		if err == nil {
			return held("it is as it was")
		}
		return s.refused(err)
	}
}

func taken(lease *coordinationv1.Lease, err error) bool {
	return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == "mallory"
}

func missing(_ *coordinationv1.Lease, err error) bool { return gone(err) == nil }

var _ = add(
	attack{
		name: "a Lease of a tenant's own keeps the operator out of a namespace", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			if err := leaseHolder(s, ns).Create(s.ctx, leaseIn(ns, "mallory")); err != nil {
				return s.refused(err)
			}
			if !s.leftAlone(ns) {
				return held("the operator works all the same")
			}
			return gotThrough("the operator leaves the namespace to mallory")
		},
	},
	attack{
		name: "a Lease applied by a tenant keeps the operator out", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			lease := read(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: `+namespacescope.LeaseName+`}, spec: {holderIdentity: mallory, leaseDurationSeconds: 3600}}`, ns)
			return s.refused(leaseHolder(s, ns).Apply(s.ctx, client.ApplyConfigurationFromUnstructured(lease), client.FieldOwner("mallory")))
		},
	},
	attack{
		name: "an account named like the operator's claims a namespace", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			account := &corev1.ServiceAccount{ObjectMeta: meta(ns, localenv.OperatorKey.Name)}
			s.create(account)
			s.bind(ns, s.role(allOf("coordination.k8s.io", "leases")), account)
			return s.refused(s.as(account).Create(s.ctx, leaseIn(ns, "mallory")))
		},
	},
	attack{
		name: "a tenant deletes the Lease of a namespace's operator by name", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: onLegitimate(func(s *scene, mallory client.WithWatch, ns string) error {
			return mallory.Delete(s.ctx, leaseIn(ns, ""))
		}, missing),
	},
	attack{
		name: "a tenant deletes the Lease of a namespace's operator by a collection of its name", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: onLegitimate(func(s *scene, mallory client.WithWatch, ns string) error {
			return mallory.DeleteAllOf(s.ctx, &coordinationv1.Lease{}, client.InNamespace(ns), client.MatchingFields{"metadata.name": namespacescope.LeaseName})
		}, missing),
	},
	attack{
		name: "a tenant deletes the Lease of a namespace's operator with all others", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: onLegitimate(func(s *scene, mallory client.WithWatch, ns string) error {
			return mallory.DeleteAllOf(s.ctx, &coordinationv1.Lease{}, client.InNamespace(ns))
		}, missing),
	},
	attack{
		name: "a tenant takes over the Lease of a namespace's operator", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: onLegitimate(func(s *scene, mallory client.WithWatch, ns string) error {
			return mallory.Patch(s.ctx, leaseIn(ns, ""), merge(`{"spec":{"holderIdentity":"mallory"}}`))
		}, taken),
	},
	attack{
		name: "a tenant lets the Lease of a namespace's operator expire", finding: "S2", heldBy: []barrier{policy(scopePolicy)},
		try: onLegitimate(func(s *scene, mallory client.WithWatch, ns string) error {
			return mallory.Patch(s.ctx, leaseIn(ns, ""), merge(`{"spec":{"leaseDurationSeconds":1,"renewTime":"2000-01-01T00:00:00.000000Z"}}`))
		}, func(lease *coordinationv1.Lease, err error) bool {
			return err == nil && *lease.Spec.LeaseDurationSeconds == 1
		}),
	},
	attack{
		name: "an administrator of a namespace grants themselves the right to claim it", finding: "S2", heldBy: []barrier{rights},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.refused(s.tenant(ns, "admin").Create(s.ctx, &rbacv1.Role{
				ObjectMeta: meta(ns, "mine"),
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"nvidia.com"}, Resources: []string{"namespacescopes"}, Verbs: []string{"hold"}}},
			}))
		},
	},
)
