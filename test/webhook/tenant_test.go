package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
)

// idle is a graph whose pods do nothing.
const (
	image = `extraPodSpec: {mainContainer: {image: "dynamo-mocker:dev", args: ["sleep infinity"]}}`
	idle  = `{services: {a: {` + image + `}}}`
)

// bind gives a user a ClusterRole in a namespace.
func bind(t *testing.T, ns, role string, subject rbacv1.Subject) {
	t.Helper()
	err := cluster.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "b-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// as is a client in somebody's else name.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return retryclient.Client(c)
}

// asOperator is a client in the operator's name, with every right.
func asOperator(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + localenv.OperatorKey.Namespace + ":" + localenv.OperatorKey.Name, Groups: []string{"system:masters"},
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return retryclient.Client(c)
}

// mayWriteLeases is a role that no role of ours gives: Leases are everybody's.
func mayWriteLeases(t *testing.T) string {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "leases-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}}},
	}
	if err := cluster.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Client.Delete(context.Background(), role) })
	return role.Name
}

func leaseIn(ns string) *coordinationv1.Lease {
	now := metav1.NewMicroTime(time.Now())
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: namespacescope.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("rogue"), RenewTime: &now, LeaseDurationSeconds: new(int32(3600))},
	}
}

// TestARogueLeaseIsRefused: neither a tenant who may write Leases nor an account
// that is called like the operator's can say that the namespace is theirs.
func TestARogueLeaseIsRefused(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	leases := mayWriteLeases(t)
	spoofed := "system:serviceaccount:" + ns + ":" + localenv.OperatorKey.Name
	for _, subject := range []rbacv1.Subject{
		{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "mallory"},
		{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: localenv.OperatorKey.Name},
	} {
		bind(t, ns, "admin", subject)
		bind(t, ns, leases, subject)
	}
	for _, user := range []string{"mallory", spoofed} {
		mallory := as(t, user)
		eventually(t, "the rights of "+user, func(ctx context.Context) error {
			other := leaseIn(ns)
			other.Name = "anything-else"
			return mallory.Create(ctx, other, client.DryRunAll)
		})
		err := mallory.Create(t.Context(), leaseIn(ns))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "namespacescopes") {
			t.Errorf("%s: %v", user, err)
		}
		if err := mallory.Create(t.Context(), graphOf(ns, "bad", `{services: {a_b: {}}}`), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "spec.services[a_b]") {
			t.Errorf("a bad graph of %s: %v", user, err)
		}
	}
	if err := as(t, "mallory").Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"nvidia.com"}, Resources: []string{"namespacescopes"}, Verbs: []string{"hold"}}},
	}); !apierrors.IsForbidden(err) {
		t.Errorf("a tenant grants themselves the right: %v", err)
	}
}

// TestALeaseMovesTheWorkAndNothingElse: it is written by somebody who may, and
// what is bad is refused as before.
func TestALeaseMovesTheWorkAndNothingElse(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	lease := leaseIn(ns)
	if err := cluster.Client.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := dryRun(t.Context(), graphOf(ns, "bad", `{services: {a_b: {}}}`)); err == nil {
		t.Error("a bad graph is admitted")
	}
	// The operator may hear of the lease after a first graph.
	if err := cluster.Client.Create(t.Context(), graphOf(ns, "first", idle)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the operator to know of the lease", func(ctx context.Context) error {
		return says(ctx, ns, "first", v1alpha1.ReasonNamespaceOperator)
	})
	if err := cluster.Client.Create(t.Context(), graphOf(ns, "g", idle)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the graph to say whose it is", func(ctx context.Context) error {
		return says(ctx, ns, "g", v1alpha1.ReasonNamespaceOperator)
	})
	var components v1alpha1.DynamoComponentDeploymentList
	if err := cluster.Client.List(t.Context(), &components, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, component := range components.Items {
		if strings.HasPrefix(component.Name, "g-") {
			t.Errorf("component %s was made", component.Name)
		}
	}
	if err := cluster.Client.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the graph to be taken over", func(ctx context.Context) error {
		if err := says(ctx, ns, "g", ""); err != nil {
			return err
		}
		return cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "g-a"}, &appsv1.Deployment{})
	})
}

// says compares the reason of a graph's condition Managed; empty for none.
func says(ctx context.Context, ns, name, reason string) error {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
		return err
	}
	got := ""
	if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionManaged); c != nil {
		got = c.Reason
	}
	if got != reason {
		return fmt.Errorf("it says %q", got)
	}
	return nil
}

// TestARogueAdapterScalesNothing: an adapter that the operator did not make has
// no say, whoever's graph it names.
func TestARogueAdapterScalesNothing(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	if err := cluster.Client.Create(t.Context(), graphOf(ns, "g", `{services: {a: {replicas: 1, `+image+`}, b: {replicas: 1, scalingAdapter: {enabled: true}, `+image+`}}}`)); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"a", "b"} {
		rogue := &v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "rogue-" + service}}
		rogue.Spec.Replicas, rogue.Spec.DGDRef = 7, v1alpha1.GraphServiceRef{Name: "g", ServiceName: service}
		if err := cluster.Client.Create(t.Context(), rogue); err != nil {
			t.Fatal(err)
		}
		eventually(t, "adapter "+rogue.Name+" to say that it is inactive", func(ctx context.Context) error {
			if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(rogue), rogue); err != nil {
				return err
			}
			c := meta.FindStatusCondition(rogue.Status.Conditions, v1alpha1.ConditionActive)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason == v1alpha1.ReasonGraphNotFound {
				return fmt.Errorf("condition %v", c)
			}
			return nil
		})
	}
	for _, service := range []string{"a", "b"} {
		eventually(t, "one replica of "+service, func(ctx context.Context) error {
			d := &appsv1.Deployment{}
			if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "g-" + service}, d); err != nil {
				return err
			}
			if *d.Spec.Replicas != 1 {
				t.Errorf("%d replicas of %s", *d.Spec.Replicas, service)
			}
			return nil
		})
	}
}

// TestARequestForAnotherNamespaceNeedsRightsThere: the operator could make the
// graph anywhere, the tenant cannot have it do so.
func TestARequestForAnotherNamespaceNeedsRightsThere(t *testing.T) {
	t.Parallel()
	ns, victim := namespace(t, nil), namespace(t, nil)
	bind(t, ns, "admin", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "tenant"})
	tenant := as(t, "tenant")
	ask := func(target string) client.Object {
		r := graphOf(ns, "", `{model: m, backend: vllm, profilingConfig: {profilerImage: i, config: {}}`+target+`}`)
		r.SetKind("DynamoGraphDeploymentRequest")
		r.SetGenerateName("r-")
		return r
	}
	elsewhere := `, deploymentOverrides: {namespace: ` + victim + `}`
	eventually(t, "the tenant's rights", func(ctx context.Context) error {
		return tenant.Create(ctx, ask(`, deploymentOverrides: {namespace: `+ns+`}`), client.DryRunAll)
	})
	eventually(t, "the tenant to be refused", func(ctx context.Context) error {
		switch err := tenant.Create(ctx, ask(elsewhere), client.DryRunAll); {
		case err == nil:
			return errors.New("it is not")
		case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "you may not create dynamographdeployments in namespace "+victim):
			return fmt.Errorf("it is for another reason: %w", err)
		}
		return nil
	})
	if err := dryRun(t.Context(), ask(elsewhere)); err != nil {
		t.Errorf("somebody who may is refused: %v", err)
	}
	// What somebody else was allowed to ask for cannot be turned into another
	// thing; what is not about the spec can still be changed.
	live := ask(elsewhere)
	if err := cluster.Client.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	if err := tenant.Patch(t.Context(), live.DeepCopyObject().(client.Object), label, client.DryRunAll); err != nil {
		t.Errorf("a label: %v", err)
	}
	image := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deploymentOverrides":{"workersImage":"evil"}}}`))
	if err := tenant.Patch(t.Context(), live.DeepCopyObject().(client.Object), image, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "you may not create") {
		t.Errorf("another image: %v", err)
	}
}

// TestHostRightsAreForPodSecurityToGive: we neither forbid nor add them. In a
// namespace that restricts pods, those that ask are not made; where it does not
// restrict, a graph's own pods ask for nothing that the baseline forbids.
func TestHostRightsAreForPodSecurityToGive(t *testing.T) {
	t.Parallel()
	ns := namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
	const greedy = `extraPodSpec: {hostNetwork: true, hostPID: true, mainContainer: {image: "dynamo-mocker:dev", args: ["sleep infinity"], securityContext: {privileged: true}}}`
	if err := cluster.Client.Create(t.Context(), graphOf(ns, "greedy", `{services: {a: {`+greedy+`}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Create(t.Context(), graphOf(ns, "modest", idle)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the greedy pods to be refused, the modest ones made", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "greedy-a"}, d); err != nil {
			return err
		}
		refused := false
		for _, c := range d.Status.Conditions {
			refused = refused || c.Type == appsv1.DeploymentReplicaFailure && strings.Contains(c.Message, "violates PodSecurity")
		}
		if !refused {
			return fmt.Errorf("conditions %v", d.Status.Conditions)
		}
		var list corev1.PodList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return err
		}
		modest := 0
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.Name, "greedy-") {
				t.Errorf("pod %s was made", pod.Name)
			}
			if strings.HasPrefix(pod.Name, "modest-") {
				modest++
			}
		}
		if modest == 0 {
			return errors.New("no pod of the modest graph")
		}
		return nil
	})
}
