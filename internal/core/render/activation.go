package render

import (
	"cmp"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// Dormancy is how a graph scales to zero, if it asks to. Where it cannot, why says so.
func Dormancy(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, provider workload.Provider, p Platform) (s dormancy.Settings, on bool, why string) {
	s, on = dormancy.Read(dgd.Annotations)
	if !on || g == nil {
		return s, false, ""
	}
	_, gang := orchestrator.ForGraph(provider, orchestrator.Settings{}).(workload.PodOwner)
	frontends := map[string]*corev1.PodSpec{}
	for _, c := range g.Components {
		if isFrontend(c) {
			frontends[c.Name] = c.Pod
		}
	}
	why = dormancy.Unsupported(gang, frontends)
	if why == "" && g.Paired {
		why = "its frontends are in generations (" + v1alpha1.AnnotationRolloutIsolation + ")"
	}
	if why == "" && p.Activator == "" {
		why = "the installation does not let graphs scale to zero (activator.enabled)"
	}
	return s, why == "", why
}

func isFrontend(c graph.Component) bool { return c.Role == graph.RoleFrontend }

// activated is the graph with activators before its frontends.
func activated(g *graph.Graph, image string, s dormancy.Settings) *graph.Graph {
	behind := *g
	behind.Components = slices.Clone(g.Components)
	for i, c := range behind.Components {
		if isFrontend(c) {
			behind.Components[i] = pod.Activated(c, image, graph.ActivationName(g.Name), s)
		}
	}
	return &behind
}

// activation renders what activators of a graph need: the Lease that they renew, and the
// right to renew that one and no other. What the Lease says is theirs.
func activation(g *graph.Graph) []graph.Object {
	name := graph.ActivationName(g.Name)
	var accounts []string
	for _, c := range g.Components {
		if c.Activated {
			accounts = append(accounts, pod.ActivatorAccount(c))
		}
	}
	slices.Sort(accounts)
	var objects []graph.Object
	var subjects []rbacv1.Subject
	for _, account := range slices.Compact(accounts) {
		if account == name {
			objects = append(objects, &corev1.ServiceAccount{ObjectMeta: rbacMeta(g.Namespace, name, name)})
		}
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: g.Namespace})
	}
	if len(subjects) == 0 {
		return nil
	}
	return append(objects,
		&rbacv1.Role{ObjectMeta: rbacMeta(g.Namespace, name, name), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{name}, Verbs: []string{"get", "patch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: rbacMeta(g.Namespace, name, name), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: g.Namespace, Labels: map[string]string{v1alpha1.LabelGraphName: graph.LabelValue(g.Name)},
		}},
	)
}

// Models are those that workers of a graph are told to serve, as far as their command
// lines or, where these do not tell, their references say. Prefill serves nobody by a name.
func Models(g *graph.Graph) []string {
	var models []string
	for _, c := range g.Components {
		if !c.Role.RunsEngine() || c.Role == graph.RolePrefill || c.SubType == string(graph.RolePrefill) {
			continue
		}
		model := c.Model
		if c.Main != nil {
			model = cmp.Or(engine.Model(c.Engine, c.Main.Command, c.Main.Args), model)
		}
		if model != "" {
			models = append(models, model)
		}
	}
	return models
}
