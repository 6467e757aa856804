package webhook

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// TestWhatTheOperatorMakesByNameItMakesUnderNoOther: an apply names what it makes,
// so that rights to create hold for that name alone.
func TestWhatTheOperatorMakesByNameItMakesUnderNoOther(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	spec := `{backendFramework: trtllm, services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "1"}}, ` +
		`extraPodSpec: {mainContainer: {image: "dynamo-mocker:dev", args: ["python3 -m dynamo.trtllm"]}}}}}`
	if err := cluster.Client.Create(t.Context(), graphOf(ns, "mpi", spec)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key of MPI to be made", func(ctx context.Context) error {
		return cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "mpi-run-ssh-secret"}, &corev1.Secret{})
	})
	home := localenv.OperatorKey.Namespace
	for _, c := range []struct{ verb, group, resource, namespace, own string }{
		{"create", "", "secrets", ns, "mpi-run-ssh-secret"},
		{"patch", "", "secrets", ns, "mpi-run-ssh-secret"},
		{"create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "dynamo-operator-validating"},
		{"delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "dynamo-operator-validating"},
		{"get", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "dynamo-operator-graph-ingress"},
		{"update", "coordination.k8s.io", "leases", home, "dynamo.nvidia.com"},
		{"update", "", "secrets", home, "webhook-server-cert"},
		{"bind", "rbac.authorization.k8s.io", "clusterroles", "", "dynamo-operator-planner"},
	} {
		for name, want := range map[string]bool{c.own: true, "another": false, "": false} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + home + ":" + localenv.OperatorKey.Name,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: c.verb, Group: c.group, Resource: c.resource, Namespace: c.namespace, Name: name},
			}}
			if err := cluster.Client.Create(t.Context(), review); err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed != want {
				t.Errorf("%s %s %q: allowed %v (%s)", c.verb, c.resource, name, review.Status.Allowed, review.Status.Reason)
			}
		}
	}
}
