package wake

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
