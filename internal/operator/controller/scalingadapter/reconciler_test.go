package scalingadapter

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// TestAFaultIsRetriedAndSaysNothingUntrue: an adapter whose graph cannot be read keeps
// its status, and one whose status cannot be written gets it by the next reconcile.
func TestAFaultIsRetriedAndSaysNothingUntrue(t *testing.T) {
	for rule, fault := range map[string]struct{ get, patch error }{
		"no fault":                     {},
		"the graph cannot be read":     {get: errors.New("timeout")},
		"the status cannot be written": {patch: errors.New("timeout")},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat", UID: "u"}}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"decode": {}}
			a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat-decode", Generation: 1}}
			a.Spec.DGDRef.Name, a.Spec.DGDRef.ServiceName, a.Spec.Replicas = "chat", "decode", 2
			faulty, patches := true, 0
			server := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(a).WithObjects(dgd, a).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if _, graph := object.(*v1alpha1.DynamoGraphDeployment); graph && faulty && fault.get != nil {
						return fault.get
					}
					return c.Get(ctx, key, object, options...)
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
					if faulty && fault.patch != nil {
						return fault.patch
					}
					patches++
					return c.SubResource(sub).Patch(ctx, object, patch, options...)
				},
			}).Build()
			r := &Reconciler{Client: server, Clock: testclock.NewFakePassiveClock(time.Unix(1000, 0))}
			reconcile := func() error {
				t.Helper()
				if err := server.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
					t.Fatal(err)
				}
				_, err := r.Reconcile(t.Context(), a)
				return err
			}
			failed := fault.get != nil || fault.patch != nil
			if err := reconcile(); (err != nil) != failed || (failed && patches > 0) {
				t.Errorf("error %v, %d writes", err, patches)
			}
			faulty = false
			if err := errors.Join(reconcile(), reconcile()); err != nil || patches != 1 {
				t.Errorf("error %v, %d writes, want one in all", err, patches)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
				t.Fatal(err)
			}
			if c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionActive); a.Status.ObservedGeneration != 1 || c == nil {
				t.Errorf("status %+v", a.Status)
			}
		})
	}
}
