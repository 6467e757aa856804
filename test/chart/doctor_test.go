package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// doctor is what kubectl dynamo doctor says of the cluster.
func doctor(ctx context.Context) (string, error) {
	var said bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(os.Getenv("PLAYGROUND_BIN"), "kubectl-dynamo"), "doctor", "--kubeconfig", cluster.Kubeconfig)
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	return said.String(), err
}

// diagnosed: a release has its rights and its policies, whatever they are called,
// and is told of a policy that is not bound.
func diagnosed(ctx context.Context, t *testing.T) {
	t.Helper()
	said, err := doctor(ctx)
	if err != nil || strings.Contains(said, "may not") || !strings.Contains(said, "policies are enforced") || !strings.Contains(said, "rights") {
		t.Errorf("doctor: %v\n%s", err, said)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	name := types.NamespacedName{Name: release + "-dynamo-operator-graph-ingress"}
	if err := cluster.Client.Get(ctx, name, binding); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Delete(ctx, binding); err != nil {
		t.Fatal(err)
	}
	if said, err := doctor(ctx); err == nil || !strings.Contains(said, "policy "+name.Name+" is not enforced") || !strings.Contains(said, "config/tenancy") {
		t.Errorf("without a binding: %v\n%s", err, said)
	}
	again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels, Annotations: binding.Annotations}, Spec: binding.Spec,
	}
	if err := cluster.Client.Create(ctx, again); err != nil {
		t.Fatal(err)
	}
}

// leavesNothing: the account of planners goes with the last graph of a namespace.
func leavesNothing(ctx context.Context, t *testing.T) {
	t.Helper()
	const brief = "brief"
	if err := cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: brief}}); err != nil {
		t.Fatal(err)
	}
	shared := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: brief, Name: "planner-serviceaccount"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: brief, Name: "planner-serviceaccount-binding"}},
	}
	var graphs []*v1alpha1.DynamoGraphDeployment
	for _, name := range []string{"first", "last"} {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: brief, Name: name}}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {Replicas: new(int32(0))}}
		if err := cluster.Client.Create(ctx, dgd); err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, dgd)
	}
	there := func(ctx context.Context) error {
		var errs []error
		for _, o := range shared {
			errs = append(errs, cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o))
		}
		return errors.Join(errs...)
	}
	eventually(ctx, t, "the account of planners", there)
	if err := cluster.Client.Delete(ctx, graphs[0]); err != nil {
		t.Fatal(err)
	}
	// One that somebody takes away comes back while a graph is there.
	if err := cluster.Client.Delete(ctx, shared[0]); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the account of planners to be made again", there)
	if err := cluster.Client.Delete(ctx, graphs[1]); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the account of planners to go", func(ctx context.Context) error {
		for _, o := range shared {
			if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s: %w", o.GetName(), errors.Join(errors.New("it is there"), err))
			}
		}
		return nil
	})
}
