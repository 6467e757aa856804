package addon

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	kindClusterRole        = "ClusterRole"
	kindClusterRoleBinding = "ClusterRoleBinding"
	rbacVersion            = "rbac.authorization.k8s.io/v1"
)

// grant gives a user the rules, by a role and a binding of the user's name, or a role that a manifest brings along.
type grant struct {
	user  string
	role  string // empty means one of the user's name, with the rules
	rules []rule
}

type rule struct {
	groups, resources, verbs []string
}

func (g grant) objects() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	role := g.role
	if role == "" {
		role = g.user
		var rules []any
		for _, r := range g.rules {
			rules = append(rules, map[string]any{
				"apiGroups": list(r.groups), "resources": list(r.resources), "verbs": list(r.verbs),
			})
		}
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": rbacVersion, "kind": kindClusterRole, "metadata": map[string]any{"name": role}, "rules": rules,
		}})
	}
	return append(objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rbacVersion, "kind": kindClusterRoleBinding, "metadata": map[string]any{"name": g.user},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kindClusterRole, "name": role},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": g.user}},
	}})
}

// list is what unstructured objects hold instead of strings.
func list(items []string) []any {
	var all []any
	for _, item := range items {
		all = append(all, item)
	}
	return all
}
