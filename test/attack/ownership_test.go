package attack

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// conflict is nil once a graph says that somebody else has a name that it needs.
func (s *scene) conflict(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
			return err
		}
		c := conditions.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != v1alpha1.ReasonNameConflict {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	}
}

// invalid is nil once an object says that its spec breaks a rule.
func (s *scene) invalid(o *unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, item := range list {
			if condition, ok := item.(map[string]any); ok && condition["reason"] == v1alpha1.ReasonValidationFailed {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", list)
	}
}

// controlledBy is nil once an object is controlled by a graph of that name.
func (s *scene) controlledBy(o client.Object, owner string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if ref := metav1.GetControllerOf(o); ref == nil || ref.Name != owner {
			return fmt.Errorf("controlled by %v", ref)
		}
		return nil
	}
}

// inTheWay has a graph need the name of an object that somebody else made and the
// graph's author could not change.
func inTheWay(name string, foreign func(ns string) client.Object, spec, owner string) attack {
	return attack{name: name, heldBy: []barrier{code(apply.Ownership)}, try: func(s *scene) outcome {
		ns := s.namespace(nil)
		theirs := foreign(ns)
		s.create(theirs)
		mallory := s.tenant(ns, "edit")
		if err := mallory.Create(s.ctx, graphOf(ns, "g", spec)); err != nil {
			s.Fatal(err)
		}
		if s.either("the graph to be judged", s.controlledBy(theirs, owner), s.conflict(ns, "g")) {
			return gotThrough("%T %s is now the graph's", theirs, theirs.GetName())
		}
		return held("the graph says that the name is taken")
	}}
}

var _ = add(
	inTheWay("a graph takes over a Role that an administrator made", func(ns string) client.Object {
		return &rbacv1.Role{ObjectMeta: meta(ns, graph.DiscoveryRole("g")), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
	}, idle, "g"),
	inTheWay("a graph takes over a RoleBinding that an administrator made", func(ns string) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: meta(ns, graph.DiscoveryBinding("g")),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: graph.DiscoveryRole("g")},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "somebody"}},
		}
	}, idle, "g"),
	inTheWay("a graph takes over an object that forges the label of our children", func(ns string) client.Object {
		account := &corev1.ServiceAccount{ObjectMeta: meta(ns, graph.DiscoveryAccount("g"))}
		account.Labels = map[string]string{"app.kubernetes.io/managed-by": apply.FieldManager, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelGraphName: "g"}
		return account
	}, idle, "g"),
	attack{
		name: "a graph takes over the component of another graph whose names run together", heldBy: []barrier{code(apply.Ownership)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			// Service b-c of chat and service c of chat-b are both called chat-b-c.
			s.create(graphOf(ns, "chat", `{services: {b-c: {`+image+`}}}`))
			s.ready(ns, "chat")
			if err := s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "chat-b", `{services: {c: {replicas: 0, `+image+`}}}`)); err != nil {
				s.Fatal(err)
			}
			component := &v1alpha1.DynamoComponentDeployment{ObjectMeta: meta(ns, "chat-b-c")}
			if s.either("the graph to be judged", func(ctx context.Context) error {
				if err := s.Client.Get(ctx, client.ObjectKeyFromObject(component), component); err != nil {
					return err
				}
				if component.Spec.Replicas == nil || *component.Spec.Replicas != 0 {
					return errors.New("it has its replicas")
				}
				return nil
			}, s.conflict(ns, "chat-b")) {
				return gotThrough("the component of the other graph was scaled to nothing")
			}
			return held("the graph says that the name is taken")
		},
	},
	attack{
		name: "a component made by hand poses as a child of another namespace's graph", heldBy: []barrier{design("children are looked for in their owner's namespace")},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			s.create(graphOf(victim, "g", idle))
			s.ready(victim, "g")
			owner := &v1alpha1.DynamoGraphDeployment{}
			if err := s.Client.Get(s.ctx, types.NamespacedName{Namespace: victim, Name: "g"}, owner); err != nil {
				s.Fatal(err)
			}
			forged := ofOurs("DynamoComponentDeployment", ns, "g-x", `{serviceName: x, `+image+`}`)
			forged.SetLabels(map[string]string{v1alpha1.LabelGraphName: "g"})
			forged.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: "nvidia.com/v1alpha1", Kind: "DynamoGraphDeployment", Name: "g", UID: owner.UID, Controller: new(true),
			}})
			mallory := s.tenant(ns, "edit")
			if err := mallory.Create(s.ctx, forged); err != nil {
				return s.refused(err)
			}
			later := s.laterOnes(victim)
			if s.either("a pass over the graph", func(ctx context.Context) error {
				if err := s.Client.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
					return err
				}
				if _, found := owner.Status.Services["x"]; !found {
					return errors.New("its status does not know the component")
				}
				return nil
			}, later) {
				return gotThrough("the graph counts it among its services")
			}
			return held("the graph does not know it")
		},
	},
	attack{
		name: "an object that names a graph as its owner is read as the graph's and pruned", heldBy: []barrier{rights},
		try: func(s *scene) outcome {
			// A Role that somebody without rights over Roles wants gone.
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", idle))
			s.ready(ns, "g")
			owner := &v1alpha1.DynamoGraphDeployment{}
			if err := s.Client.Get(s.ctx, types.NamespacedName{Namespace: ns, Name: "g"}, owner); err != nil {
				s.Fatal(err)
			}
			role := &rbacv1.Role{ObjectMeta: meta(ns, "of-the-administrator")}
			s.create(role)
			err := s.tenant(ns, "edit").Patch(s.ctx, role.DeepCopy(), merge(fmt.Sprintf(
				`{"metadata":{"ownerReferences":[{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoGraphDeployment","name":"g","uid":%q,"controller":true}]}}`, owner.UID)))
			if err != nil {
				return s.refused(err)
			}
			s.eventually("the Role to be pruned", func(ctx context.Context) error {
				return gone(s.Client.Get(ctx, client.ObjectKeyFromObject(role), role))
			})
			return gotThrough("the Role is gone")
		},
	},
)
