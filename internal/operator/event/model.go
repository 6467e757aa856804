package event

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Reasons of events about models.
const (
	reasonEndpointsReady   = "EndpointsReady"
	reasonPartialFailure   = "PartialEndpointFailure"
	reasonNoEndpoints      = "NoEndpointsFound"
	reasonUnloaded         = "LoRAUnloaded"
	reasonUnloadFailed     = "LoRAUnloadFailed"
	reasonValidationFailed = v1alpha1.ReasonValidationFailed
)

// ModelTurned tells what became different between two statuses of a model.
func ModelTurned(r events.EventRecorder, dm *v1alpha1.DynamoModel, was, is v1alpha1.DynamoModelStatus) {
	tell := func(kind, reason, message string) { r.Eventf(dm, nil, kind, reason, "Reconcile", "%s", message) }
	if now, turned := turned(was.Conditions, is.Conditions, v1alpha1.ConditionValid); turned && now.Status == metav1.ConditionFalse {
		tell(corev1.EventTypeWarning, reasonValidationFailed, now.Message)
	}
	now, turned := turned(was.Conditions, is.Conditions, v1alpha1.ConditionEndpointsReady)
	failing := failed(is) && !failed(was)
	switch {
	case turned && now.Reason == v1alpha1.ReasonEndpointsDiscovered:
		tell(corev1.EventTypeNormal, v1alpha1.ReasonEndpointsDiscovered, now.Message)
	case turned && now.Status == metav1.ConditionTrue:
		tell(corev1.EventTypeNormal, reasonEndpointsReady, now.Message)
	case turned && now.Reason == v1alpha1.ReasonNoEndpoints:
		tell(corev1.EventTypeWarning, reasonNoEndpoints, now.Message)
	case failing:
		tell(corev1.EventTypeWarning, reasonPartialFailure, now.Message)
	}
}

// ModelUnloaded tells how the adapter of a deleted model left the engines;
// failure is empty if all gave it up.
func ModelUnloaded(r events.EventRecorder, dm *v1alpha1.DynamoModel, failure string) {
	if failure != "" {
		r.Eventf(dm, nil, corev1.EventTypeWarning, reasonUnloadFailed, "Finalize", "%s", failure)
		return
	}
	r.Eventf(dm, nil, corev1.EventTypeNormal, reasonUnloaded, "Finalize", "unloaded %s", dm.Spec.ModelName)
}

// turned reports whether a condition has another reason than before.
func turned(was, is []metav1.Condition, kind string) (metav1.Condition, bool) {
	now, before := meta.FindStatusCondition(is, kind), meta.FindStatusCondition(was, kind)
	if now == nil {
		return metav1.Condition{}, false
	}
	return *now, before == nil || before.Status != now.Status || before.Reason != now.Reason
}

func failed(s v1alpha1.DynamoModelStatus) bool {
	for _, e := range s.Endpoints {
		if e.Error != "" {
			return true
		}
	}
	return false
}
