package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Discovery renders the account under which the pods of a graph find each
// other, with the rights that takes: nothing where they meet in etcd instead. A
// service may choose for itself.
func Discovery(g *graph.Graph) []graph.Object {
	ask := func(c graph.Component) bool { return c.Discovery == graph.DiscoveryKubernetes }
	if g.Discovery != graph.DiscoveryKubernetes && !slices.ContainsFunc(g.Components, ask) {
		return nil
	}
	account := graph.DiscoveryAccount(g.Name)
	meta := func(name string) metav1.ObjectMeta { return rbacMeta(g.Namespace, name, account) }
	return []graph.Object{
		&corev1.ServiceAccount{ObjectMeta: meta(account)},
		&rbacv1.Role{ObjectMeta: meta(graph.DiscoveryRole(g.Name)), Rules: discoveryRules(contract.Of(g.Contract).Objects)},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(graph.DiscoveryBinding(g.Name)),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: graph.DiscoveryRole(g.Name)},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: g.Namespace}},
		},
	}
}

// discoveryRules let a pod publish its own metadata and see who is ready.
func discoveryRules(rules contract.Objects) []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	seen := []string{"endpoints"}
	if rules.ReadPods {
		seen = append(seen, "pods")
	}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: seen, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
		{
			APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"dynamoworkermetadatas"},
			Verbs: []string{"create", "get", "list", "watch", "update", "patch", "delete"},
		},
	}
}
