package render

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/render/pod"
)

// Roles are the ClusterRoles that accounts of a namespace are bound to. They
// come with the installation; an empty name means that it binds them itself.
type Roles struct {
	Planner, Picker string
}

// accounts renders the accounts that planner and picker run under. They serve
// all graphs of a namespace, so no graph owns them.
func accounts(g *graph.Graph, r Roles) []graph.Wanted {
	var wanted []graph.Wanted
	if r.Planner != "" {
		wanted = append(wanted, account(g.Namespace, pod.PlannerAccount, r.Planner)...)
	}
	if _, picks := g.Picker(); picks && r.Picker != "" {
		wanted = append(wanted, account(g.Namespace, pod.PickerAccount, r.Picker)...)
	}
	return wanted
}

func account(namespace, name, role string) []graph.Wanted {
	loose := func(o graph.Object) graph.Wanted { return graph.Wanted{Object: o, Tie: graph.Loose} }
	return []graph.Wanted{
		loose(&corev1.ServiceAccount{ObjectMeta: rbacMeta(namespace, name, name)}),
		loose(&rbacv1.RoleBinding{
			ObjectMeta: rbacMeta(namespace, name+"-binding", name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}},
		}),
	}
}

// rbacMeta labels an object with the account that it is about.
func rbacMeta(namespace, name, account string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{
		"app.kubernetes.io/managed-by": "dynamo-operator",
		"app.kubernetes.io/component":  "rbac",
		"app.kubernetes.io/name":       account,
	}}
}
