package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// account is a ServiceAccount of an operator.
type account struct{ namespace, name string }

func accountOf(d appsv1.Deployment) account {
	return account{d.Namespace, d.Spec.Template.Spec.ServiceAccountName}
}

func (a account) String() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", a.namespace, a.name)
}

func (a account) among(subjects []rbacv1.Subject) bool {
	return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: a.name})
}

// rights asks the server whether each operator may do what it is shipped to do,
// where it is to do it: everywhere, or in the namespaces that it serves.
func rights(ctx context.Context, p target) ([]finding, error) {
	deployments, err := Operators(ctx, p)
	if err != nil {
		return nil, err
	}
	everywhere, inNamespaces, err := needed()
	if err != nil {
		return nil, err
	}
	var findings []finding
	for i := range deployments {
		who := accountOf(deployments[i])
		held, err := p.held(ctx, who)
		if err != nil {
			return nil, err
		}
		shipped, places := everywhere, []string{""}
		if !held.cluster {
			shipped, places = inNamespaces, held.namespaces
		}
		of, err := p.lacking(ctx, who, shipped, places, held)
		if err != nil {
			return nil, err
		}
		findings = append(findings, of...)
	}
	return findings, nil
}

func (p target) lacking(ctx context.Context, who account, shipped []right, places []string, held bound) ([]finding, error) {
	if len(places) == 0 {
		return []finding{{verdict: wrong, what: who.String() + " is bound to no role of the operator", todo: "install the roles and bindings of the operator's own version"}}, nil
	}
	var findings []finding
	for _, place := range places {
		for _, r := range shipped {
			allowed, err := p.may(ctx, who, r, place, held)
			if err != nil {
				return nil, err
			}
			if !allowed {
				findings = append(findings, finding{verdict: note, what: fmt.Sprintf("%s may not %s%s", who, r, in(place)), todo: "install the roles of the operator's own version"})
			}
		}
	}
	if len(findings) == 0 {
		findings = append(findings, finding{what: fmt.Sprintf("%s has its %d rights%s", who, len(shipped), in(strings.Join(places, ", ")))})
	}
	return findings, nil
}

func in(place string) string {
	if place == "" {
		return ""
	}
	return " in " + place
}

// may asks the server. What an object is called is the installation's choice, so a
// right on single objects is looked for among what is bound.
func (p target) may(ctx context.Context, who account, r right, place string, held bound) (bool, error) {
	if r.named {
		return held.names(r), nil
	}
	attributes := r.ResourceAttributes
	attributes.Namespace = place
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: who.String(), ResourceAttributes: &attributes}}
	if err := p.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask what %s may do: %w", who, err)
	}
	return review.Status.Allowed, nil
}

// right is one verb on one resource, on all objects or on some by name.
type right struct {
	authorizationv1.ResourceAttributes
	named bool
}

func (r right) resource() string {
	return strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
}

func (r right) String() string {
	return strings.TrimSuffix(r.Verb+" "+r.resource()+"."+r.Group, ".")
}

// bound is what roles give an account.
type bound struct {
	// cluster says that a role holds everywhere.
	cluster bool
	// namespaces are those where the account may work on graphs.
	namespaces []string
	rules      []rbacv1.PolicyRule
}

// names reports whether the account has a right, be it on some objects alone.
func (b bound) names(r right) bool {
	return slices.ContainsFunc(b.rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Verbs, r.Verb) && slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.resource())
	})
}

// held reads every role that an account is bound to.
func (p target) held(ctx context.Context, who account) (bound, error) {
	var b bound
	var cluster rbacv1.ClusterRoleBindingList
	var all rbacv1.RoleBindingList
	if err := errors.Join(p.List(ctx, &cluster), p.List(ctx, &all)); err != nil {
		return b, err
	}
	for _, binding := range cluster.Items { // one without a namespace holds everywhere
		all.Items = append(all.Items, rbacv1.RoleBinding{Subjects: binding.Subjects, RoleRef: binding.RoleRef})
	}
	for _, binding := range all.Items {
		if !who.among(binding.Subjects) {
			continue
		}
		rules, err := p.rules(ctx, binding.Namespace, binding.RoleRef)
		if err != nil {
			return b, err
		}
		b.rules = append(b.rules, rules...)
		switch {
		case !onGraphs(rules):
		case binding.Namespace == "":
			b.cluster = true
		default:
			b.namespaces = append(b.namespaces, binding.Namespace)
		}
	}
	slices.Sort(b.namespaces)
	b.namespaces = slices.Compact(b.namespaces)
	return b, nil
}

// onGraphs tells the role by which an operator works from those beside it.
func onGraphs(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, "nvidia.com") && slices.Contains(r.Resources, "dynamographdeployments")
	})
}

// rules are those of the role that a binding names; one that is gone gives none.
func (p target) rules(ctx context.Context, namespace string, ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "Role" {
		role := &rbacv1.Role{}
		err := p.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, role)
		return role.Rules, client.IgnoreNotFound(err)
	}
	role := &rbacv1.ClusterRole{}
	err := p.Get(ctx, client.ObjectKey{Name: ref.Name}, role)
	return role.Rules, client.IgnoreNotFound(err)
}

// needed are the rights of the shipped roles, one by one: of an operator for the
// whole cluster, and of one for some namespaces.
func needed() (everywhere, inNamespaces []right, err error) {
	objects, err := installation.Operator()
	if err != nil {
		return nil, nil, err
	}
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return nil, nil, err
		}
		for _, rule := range role.Rules {
			switch strings.TrimPrefix(role.Name, "dynamo-operator-") {
			case "manager":
				everywhere = append(everywhere, spread(rule)...)
				if !ofCluster(rule) {
					inNamespaces = append(inNamespaces, spread(rule)...)
				}
			case "manager-cluster":
				everywhere = append(everywhere, spread(rule)...)
			}
		}
	}
	return everywhere, inNamespaces, nil
}

// ofCluster are rights that have no meaning in a namespace: roles of the cluster
// are bound by the installation of an operator that serves one.
func ofCluster(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "clusterroles") }

func spread(rule rbacv1.PolicyRule) []right {
	var all []right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			base, sub, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				all = append(all, right{
					authorizationv1.ResourceAttributes{Group: group, Resource: base, Subresource: sub, Verb: verb}, len(rule.ResourceNames) > 0,
				})
			}
		}
	}
	return all
}
