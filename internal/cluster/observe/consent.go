package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
)

// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=list
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create,roleName=dynamo-operator-manager-cluster

// Reviewer asks the API server what somebody may do. A review is sent as an object
// to create; nothing is stored.
type Reviewer interface {
	Create(ctx context.Context, review client.Object, options ...client.CreateOption) error
}

// consent reads what a namespace says to requests of another, from the server:
// consent that was withdrawn a moment ago is none.
func (q Requests) consent(ctx context.Context, from, target string) (*requestplan.Consent, error) {
	policies, err := Policies(ctx, q.Direct, q.Policy)
	if err != nil {
		return nil, err
	}
	c := &requestplan.Consent{Policy: policies[0]}
	var accounts corev1.ServiceAccountList
	if err := q.Direct.List(ctx, &accounts, client.InNamespace(target)); err != nil {
		return nil, fmt.Errorf("list ServiceAccounts of %s: %w", target, err)
	}
	for _, account := range accounts.Items {
		if account.DeletionTimestamp != nil || !allows(account, from) {
			continue
		}
		grant, err := q.grant(ctx, account)
		if err != nil {
			return nil, err
		}
		c.Grants = append(c.Grants, grant)
	}
	slices.SortFunc(c.Grants, func(a, b requestplan.Grant) int { return strings.Compare(a.Account, b.Account) })
	return c, nil
}

// allows reports whether an account lists a namespace.
func allows(account corev1.ServiceAccount, namespace string) bool {
	for name := range strings.SplitSeq(account.Annotations[v1alpha1.AnnotationAllowRequestsFrom], ",") {
		if strings.TrimSpace(name) == namespace {
			return true
		}
	}
	return false
}

// grant asks which of the rights that a request may need an account has.
func (q Requests) grant(ctx context.Context, account corev1.ServiceAccount) (requestplan.Grant, error) {
	grant := requestplan.Grant{Account: account.Name}
	for _, right := range requestplan.Rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + account.Namespace + ":" + account.Name,
			UID:    string(account.UID),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: account.Namespace, Verb: right.Verb, Group: right.Group, Resource: right.Resource,
			},
		}}
		if err := q.Reviews.Create(ctx, review); err != nil {
			return grant, fmt.Errorf("ask whether ServiceAccount %s/%s may %s: %w", account.Namespace, account.Name, right, err)
		}
		if !review.Status.Allowed {
			grant.Lacks = append(grant.Lacks, right)
		}
	}
	return grant, nil
}
