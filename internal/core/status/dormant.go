package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// dormant is there while a graph scales to zero. Its message names no time that moves
// with each request: a graph that serves is not written for that.
func dormant(conditions *[]metav1.Condition, d *snapshot.Dormancy, generation int64, now metav1.Time) {
	if d == nil {
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionDormant)
		return
	}
	setCondition(conditions, v1alpha1.ConditionDormant, phase(d), generation, now)
}

func phase(d *snapshot.Dormancy) condition {
	switch {
	case d.Unsupported != "":
		return condition{false, v1alpha1.ReasonDormancyUnsupported, "the graph does not scale to zero: " + d.Unsupported}
	case d.Phase == dormancy.Dormant:
		return condition{true, v1alpha1.ReasonIdle, fmt.Sprintf("no request since %s; workers start with the next one", d.LastRequest.UTC().Format(time.RFC3339))}
	case d.Phase == dormancy.Waking:
		return condition{false, v1alpha1.ReasonWaking, "workers start"}
	default:
		return condition{false, v1alpha1.ReasonActive, fmt.Sprintf("workers end after %s without a request", d.After)}
	}
}
