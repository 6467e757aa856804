//go:build unguarded

package topologylabel

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestAttackSucceedsWithoutTheGuardOfNodeLabels sees what TestAPodIsGivenWhatItAsksFor
// sees stopped.
func TestAttackSucceedsWithoutTheGuardOfNodeLabels(t *testing.T) {
	t.Setenv(guard.Variable, string(Shown))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationTopologyLabel: "secret"}}}
	if got := Missing(pod, map[string]string{"secret": "s"}, nil, nil); got["secret"] != "s" {
		t.Errorf("the pod is given %v", got)
	}
}
