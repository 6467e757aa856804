package installation

import (
	"context"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

func TestASecondOperatorOfTheClusterIsNotInstalled(t *testing.T) {
	held := func(by string) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &by, LeaseDurationSeconds: new(int32(1))}}
	}
	helm := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{releaseName: "dynamo", releaseNamespace: "ops"}}}
	cases := map[string]struct {
		lease   *coordinationv1.Lease
		renewed bool
		problem string
	}{
		"the first is":                      {},
		"nor is an update refused":          {lease: held(Namespace + "/" + Deployment + "-abc_1"), renewed: true},
		"what was given back is free":       {lease: &coordinationv1.Lease{}},
		"a release of Helm is named":        {lease: helm, problem: "release dynamo in namespace ops"},
		"one that renews is named":          {lease: held("ops/another_1"), renewed: true, problem: "ops/another_1"},
		"one that died is no reason to end": {lease: held("ops/another_1")},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			b := fake.NewClientBuilder().WithScheme(scheme.New())
			if c.lease != nil {
				c.lease.Namespace, c.lease.Name = Scope.Namespace, Scope.Name
				b = b.WithObjects(c.lease)
			}
			renewing := interceptor.NewClient(b.Build(), interceptor.Funcs{Get: func(ctx context.Context, in client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
				if err := in.Get(ctx, key, object, o...); err != nil || !c.renewed {
					return err
				}
				return in.Update(ctx, object.DeepCopyObject().(client.Object))
			}})
			err := Installer{Client: renewing}.Alone(t.Context())
			if helm := (Installer{Client: renewing}).NotByHelm(t.Context()); (helm != nil) != strings.Contains(c.problem, "release") {
				t.Errorf("by Helm: %v", helm)
			}
			if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("error %v, want %q", err, c.problem)
			}
		})
	}
}
