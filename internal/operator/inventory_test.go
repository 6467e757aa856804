package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

func TestAnObjectIsCountedAsReadyInItsOwnGenerationAlone(t *testing.T) {
	graph := func(generation, observed int64, state v1alpha1.GraphState, ready metav1.ConditionStatus) client.Object {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Generation: generation}}
		dgd.Status.ObservedGeneration, dgd.Status.State = observed, state
		dgd.Status.Conditions = conditions(v1alpha1.ConditionReady, ready, time.Time{})
		return dgd
	}
	component := func(generation, observed int64, available metav1.ConditionStatus) client.Object {
		dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", Generation: generation}}
		dcd.Status.ObservedGeneration = observed
		dcd.Status.Conditions = conditions(v1alpha1.ConditionAvailable, available, time.Time{})
		return dcd
	}
	counted := func(kind, status string, ready bool) metric.Object {
		return metric.Object{Kind: kind, Namespace: "n", Name: "a", Status: status, Ready: ready}
	}
	const dgd, dcd = v1alpha1.KindDynamoGraphDeployment, v1alpha1.KindDynamoComponentDeployment
	cases := map[string]struct {
		object client.Object
		want   metric.Object
	}{
		"a graph that is ready":                       {graph(2, 2, "successful", "True"), counted(dgd, "successful", true)},
		"one that was changed since":                  {graph(3, 2, "successful", "True"), counted(dgd, "pending", false)},
		"one that failed before it was changed":       {graph(3, 2, "failed", "False"), counted(dgd, "failed", false)},
		"one that nobody has looked at":               {graph(1, 0, "", ""), counted(dgd, "unknown", false)},
		"a component that is available":               {component(2, 2, "True"), counted(dcd, "ready", false)},
		"one that was changed since it was available": {component(3, 2, "True"), counted(dcd, "not_ready", false)},
		"one that is not available in its generation": {component(2, 2, "False"), counted(dcd, "not_ready", false)},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, countable(c.object)); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}
