package rbacaudit

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
)

// Team is the account, in the operator's namespace, of an operator for one
// namespace that tests run.
const Team = "team-operator"

// Shipped are the roles that an installation brings or the operator makes, and
// who holds them. What people hold is for them to use.
func Shipped() ([]Holder, error) {
	objects, err := installation.Operator()
	if err != nil {
		return nil, err
	}
	roles := map[string]Role{}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		read := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, read); err != nil {
			return nil, fmt.Errorf("read role %s: %w", object.GetName(), err)
		}
		short := strings.TrimPrefix(object.GetName(), "dynamo-operator-")
		roles[short] = Role{Name: short, Namespace: object.GetNamespace(), Rules: read.Rules}
	}
	roles["discovery"] = Role{Name: "discovery", Rules: discovery()}
	var holders []Holder
	for _, h := range []struct {
		account string
		roles   []string
	}{
		{installation.Namespace + ":dynamo-operator-controller-manager", []string{"manager", "manager-cluster", "webhook", "leader-election", "cluster-scope"}},
		{installation.Namespace + ":" + Team, []string{"manager", "namespace-scope"}},
		{"*:planner-serviceaccount", []string{"planner"}},
		{"*:epp-serviceaccount", []string{"epp"}},
		{"*:dgdr-profiling-job", []string{"profiler"}},
		{"*" + graph.DiscoveryAccount(""), []string{"discovery"}},
	} {
		holder := Holder{Account: h.account}
		for _, name := range h.roles {
			role, found := roles[name]
			if !found {
				return nil, fmt.Errorf("no role %s is shipped", name)
			}
			holder.Roles = append(holder.Roles, role)
		}
		holders = append(holders, holder)
	}
	return holders, nil
}

// discovery is the Role of each graph's pods; those of 1.x runtimes hold what others
// do, and more.
func discovery() []rbacv1.PolicyRule {
	for _, object := range render.Discovery(&graph.Graph{Name: "g", Discovery: graph.DiscoveryKubernetes, Contract: graph.ContractV1}) {
		if role, ok := object.(*rbacv1.Role); ok {
			return role.Rules
		}
	}
	return nil
}
