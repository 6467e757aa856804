package status

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Patch is the strategic merge patch that turns the status from old to new for
// the pod with that uid and no other; nil if there is nothing to change.
func Patch(uid types.UID, from, to corev1.PodStatus) ([]byte, error) {
	if apiequality.Semantic.DeepEqual(from, to) {
		return nil, nil
	}
	before, err := json.Marshal(corev1.Pod{Status: from})
	if err != nil {
		return nil, fmt.Errorf("encode the old status: %w", err)
	}
	// The uid only in the new object makes it part of the patch, a precondition.
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: to})
	if err != nil {
		return nil, fmt.Errorf("encode the new status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compare the statuses: %w", err)
	}
	// What differs in memory may be the same on the wire, times for one.
	if bytes.Equal(patch, fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, uid)) {
		return nil, nil
	}
	return patch, nil
}
