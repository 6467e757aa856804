package render

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Roles are the ClusterRoles that accounts of a namespace are bound to. They
// come with the installation; an empty name means that it binds them itself.
type Roles struct {
	Planner, Picker string
}

// accounts renders the accounts that planner and picker run under. They serve
// all graphs of a namespace, so no graph owns them. The planner's is made for every
// graph, as the original operator does, but not for every component that stands
// alone.
func accounts(g *graph.Graph, r Roles) []graph.Desired {
	var wanted []graph.Desired
	if r.Planner != "" && (!g.Standalone || g.Components[0].Role == graph.RolePlanner) {
		wanted = append(wanted, account(g.Namespace, pod.PlannerAccount, r.Planner)...)
	}
	if _, picks := g.Picker(); picks && r.Picker != "" {
		wanted = append(wanted, account(g.Namespace, pod.PickerAccount, r.Picker)...)
	}
	return wanted
}

func account(namespace, name, role string) []graph.Desired {
	loose := func(o graph.Object) graph.Desired { return graph.Desired{Object: o, Ownership: graph.OwnershipNone} }
	return []graph.Desired{
		loose(&corev1.ServiceAccount{ObjectMeta: rbacMeta(namespace, name, name)}),
		loose(&rbacv1.RoleBinding{
			ObjectMeta: rbacMeta(namespace, bindingOf(name), name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}},
		}),
	}
}

// rbacMeta labels an object with the account that it is about, whose name may be
// longer than a label.
func rbacMeta(namespace, name, account string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{
		"app.kubernetes.io/managed-by": "dynamo-operator",
		"app.kubernetes.io/component":  "rbac",
		"app.kubernetes.io/name":       graph.LabelValue(account),
	}}
}

// SharedAccount is a ServiceAccount that graphs of a namespace share, and the
// RoleBinding that gives it its rights.
type SharedAccount struct{ Account, Binding string }

// SharedAccounts are those that the operator makes.
func SharedAccounts(r Roles) []SharedAccount {
	var shared []SharedAccount
	if r.Planner != "" {
		shared = append(shared, SharedAccount{pod.PlannerAccount, bindingOf(pod.PlannerAccount)})
	}
	if r.Picker != "" {
		shared = append(shared, SharedAccount{pod.PickerAccount, bindingOf(pod.PickerAccount)})
	}
	return shared
}

// Needed reports whether somebody in a namespace needs the account.
func (s SharedAccount) Needed(by snapshot.AccountUsers) bool {
	if s.Account == pod.PickerAccount {
		return by.Runs(v1alpha1.ComponentTypeEPP)
	}
	return by.Any()
}

// Made reports whether an object is one that the operator made for the account:
// others have the name too, and keep it.
func (s SharedAccount) Made(object graph.Object) bool {
	for key, value := range rbacMeta(object.GetNamespace(), object.GetName(), s.Account).Labels {
		if object.GetLabels()[key] != value {
			return false
		}
	}
	return object.GetName() == s.Account || object.GetName() == s.Binding
}

func bindingOf(account string) string { return account + "-binding" }
