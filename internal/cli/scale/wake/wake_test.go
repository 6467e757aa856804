package wake

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

func TestWake(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat-activation"}}
	for name, c := range map[string]struct {
		condition *metav1.Condition
		lease     bool
		says      string
		fails     string
	}{
		"a sleeping graph is woken":         {&metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}, true, "told to wake", ""},
		"one that is awake stays so":        {&metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonActive}, true, "is awake", ""},
		"one that never sleeps is refused":  {nil, true, "", "does not scale to zero"},
		"one that cannot sleep is refused":  {&metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDormancyUnsupported}, true, "", "does not scale to zero"},
		"without its Lease there is no way": {&metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}, false, "", "has no Lease chat-activation yet"},
	} {
		t.Run(name, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat"}}
			if c.condition != nil {
				c.condition.Type = v1alpha1.ConditionDormant
				dgd.Status.Conditions = []metav1.Condition{*c.condition}
			}
			objects := []client.Object{dgd}
			if c.lease {
				objects = append(objects, lease.DeepCopy())
			}
			cluster := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
			var out strings.Builder
			err := run(t.Context(), cluster, client.ObjectKeyFromObject(dgd), 0, now, &out)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Fatalf("error %v, want %q", err, c.fails)
			}
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("says %q, want %q", out.String(), c.says)
			}
			if !c.lease {
				return
			}
			got := &coordinationv1.Lease{}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(lease), got); err != nil {
				t.Fatal(err)
			}
			if renewed := got.Spec.RenewTime != nil && got.Spec.RenewTime.Equal(&metav1.MicroTime{Time: now}); renewed != (c.fails == "") {
				t.Errorf("renewed at %v", got.Spec.RenewTime)
			}
		})
	}
}

// TestTheServersClockCounts: the operator, whose clock is the cluster's, takes a time of next
// hour for none, and one of the last hour for long ago. Both end workers that serve.
func TestTheServersClockCounts(t *testing.T) {
	server := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	never := time.Time{}
	for name, c := range map[string]struct {
		mine, stored, want time.Time
	}{
		"a clock that is ahead":                        {server.Add(time.Hour), server.Add(-time.Minute), server},
		"a clock that is behind":                       {server.Add(-time.Hour), server.Add(-time.Minute), server},
		"a Lease that nobody has renewed":              {server.Add(-time.Hour), never, server},
		"a request that has just come is not put back": {server, server.Add(500 * time.Millisecond), server.Add(500 * time.Millisecond)},
		"a time that cannot be is":                     {server, server.Add(time.Hour), server},
	} {
		t.Run(name, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat"}}
			dgd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonActive}}
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat-activation"}}
			if !c.stored.IsZero() {
				lease.Spec.RenewTime = &metav1.MicroTime{Time: c.stored}
			}
			cluster := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(dgd, lease).WithInterceptorFuncs(clocked(server)).Build()
			if _, err := Tell(t.Context(), cluster, client.ObjectKeyFromObject(dgd), c.mine); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
				t.Fatal(err)
			}
			if !lease.Spec.RenewTime.Equal(&metav1.MicroTime{Time: c.want}) {
				t.Errorf("renewed at %v, want %v", lease.Spec.RenewTime, c.want)
			}
			if holder := lease.Spec.HolderIdentity; holder != nil {
				t.Errorf("held by %s", *holder)
			}
		})
	}
}

// clocked answers a patch that changes nothing as an API server of that time does.
func clocked(now time.Time) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
		said := &client.PatchOptions{}
		said.ApplyOptions(options)
		if !slices.Contains(said.DryRun, metav1.DryRunAll) {
			return c.Patch(ctx, object, patch, options...)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		object.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "dynamo-activator", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: now.Add(-time.Minute)}},
			{Manager: said.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: now}},
		})
		return nil
	}}
}
