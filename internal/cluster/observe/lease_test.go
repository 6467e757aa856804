package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
)

func TestATrimmedLeaseSaysTheSameAndIsSmall(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", 100<<10)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(at), Annotations: map[string]string{"x": long},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: long, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"` + long + `":{}},"f:spec":{"f:renewTime":{}}}`)},
			},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &long, RenewTime: &metav1.MicroTime{Time: at}},
	}
	want := dormancy.FromLease(lease)
	if _, err := TrimLease(lease); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, dormancy.FromLease(lease)); diff != "" || want.Written != at {
		t.Errorf("of %+v: %s", want, diff)
	}
	if n := lease.Size(); n > 1<<10 {
		t.Errorf("%d bytes are kept", n)
	}
}
