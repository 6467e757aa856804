// Package rbacaudit compares the rights of roles with the API server's audit log:
// a right that nobody used is too much, a denied request is one too few. Rights
// that are held without being used are in a table, with the reason.
package rbacaudit

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// Right is one verb on one resource, by one role. The resource carries its
// subresource and its group, as in deployments/scale.apps.
type Right struct {
	Role, Verb, Resource string
}

func (r Right) String() string { return r.Role + ": " + r.Verb + " " + r.Resource }

// Role is what a ClusterRole or Role gives, and where.
type Role struct {
	Name string
	// Namespace is the one that the rules hold in; empty where it is not said.
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Rights are all that the role gives, in order. Paths that are no resources are
// not in audit logs of the API server, and not here.
func (r Role) Rights() []Right {
	all := map[Right]bool{}
	for _, rule := range r.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[Right{r.Name, verb, name(group, resource)}] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
}

// allows reports whether the role allows a request, and how narrowly: a right
// on one object in one namespace is narrower than one on all of them.
func (r Role) allows(verb string, e auditlog.Entry) (narrow int, allowed bool) {
	if r.Namespace != "" && r.Namespace != e.Ref.Namespace {
		return 0, false
	}
	for _, rule := range r.Rules {
		if !slices.Contains(rule.Verbs, verb) || !slices.Contains(rule.APIGroups, e.Ref.Group) ||
			!slices.Contains(rule.Resources, join(e.Ref.Resource, e.Ref.Subresource)) {
			continue
		}
		if len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, e.Ref.Name) {
			continue
		}
		now := 1
		if r.Namespace != "" {
			now += 2
		}
		if len(rule.ResourceNames) > 0 {
			now++
		}
		narrow, allowed = max(narrow, now), true
	}
	return narrow, allowed
}

// Holder is who has roles.
type Holder struct {
	// Account is a ServiceAccount, as namespace:name; an asterisk stands for
	// whatever begins or ends like this.
	Account string
	Roles   []Role
}

func (h Holder) is(user string) bool {
	account, found := strings.CutPrefix(user, "system:serviceaccount:")
	if !found {
		return false
	}
	before, after, open := strings.Cut(h.Account, "*")
	if !open {
		return account == h.Account
	}
	return strings.HasPrefix(account, before) && strings.HasSuffix(account, after)
}

func join(resource, sub string) string {
	if sub == "" {
		return resource
	}
	return resource + "/" + sub
}

func name(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}
