package installation

import (
	"context"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// TestAnOperatorThatGoesHoldsNothing takes the finalizer off what the operator looked
// after, and leaves what is of others: their finalizers, and namespaces that have an
// operator of their own.
func TestAnOperatorThatGoesHoldsNothing(t *testing.T) {
	operator := types.NamespacedName{Namespace: "ops", Name: Deployment}
	for rule, c := range map[string]struct {
		namespaces []string
		want       map[string][]string
	}{
		"of the cluster":   {nil, map[string][]string{"a": {"other/finalizer"}, "dead": nil, "own": {v1alpha1.Finalizer}}},
		"of one namespace": {[]string{"own"}, map[string][]string{"a": {v1alpha1.Finalizer, "other/finalizer"}, "dead": {v1alpha1.Finalizer}, "own": nil}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			model := func(namespace string, finalizers ...string) *v1alpha1.DynamoModel {
				return &v1alpha1.DynamoModel{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", Finalizers: finalizers}}
			}
			lease := func(namespace string) *coordinationv1.Lease {
				return &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespacescope.LeaseName},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(2))},
				}
			}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: operator.Name}}
			d.Spec.Replicas, d.Spec.Selector = new(int32(2)), &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			plain := fake.NewClientBuilder().WithScheme(scheme.New()).
				WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
				WithObjects(d, model("a", v1alpha1.Finalizer, "other/finalizer"), model("dead", v1alpha1.Finalizer), model("own", v1alpha1.Finalizer), lease("dead"), lease("own")).Build()
			// The operator of namespace own renews its Lease whenever somebody looks.
			renewing := interceptor.NewClient(plain, interceptor.Funcs{List: func(ctx context.Context, in client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if leases, ok := list.(*coordinationv1.LeaseList); ok {
					held := &coordinationv1.Lease{}
					if err := in.Get(ctx, types.NamespacedName{Namespace: "own", Name: namespacescope.LeaseName}, held); err != nil {
						return err
					}
					if err := in.Update(ctx, held); err != nil {
						return err
					}
					return in.List(ctx, leases, o...)
				}
				return in.List(ctx, list, o...)
			}})
			if err := (Installer{Client: renewing}).Retire(t.Context(), operator, c.namespaces, io.Discard); err != nil {
				t.Fatal(err)
			}
			if err := plain.Get(t.Context(), operator, d); err != nil || *d.Spec.Replicas != 0 {
				t.Errorf("the operator has %d replicas, %v", *d.Spec.Replicas, err)
			}
			got := map[string][]string{}
			var models v1alpha1.DynamoModelList
			if err := plain.List(t.Context(), &models); err != nil {
				t.Fatal(err)
			}
			for i := range models.Items {
				got[models.Items[i].Namespace] = models.Items[i].Finalizers
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
