package e2e

import (
	"slices"
	"strings"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// TestGraphsRunOnGrove runs graphs through Grove's API. Grove's own operator
// cannot be built here; a stand-in makes the pods.
func TestGraphsRunOnGrove(t *testing.T) {
	grove := need(t, grove)
	operated := newWorldOn(t, grove)
	operated.scaleOperator(0)
	operated.configureOperator(generational)
	operated.scaleOperator(1)
	t.Run("graphs", func(t *testing.T) {
		t.Run("first causes", func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, grove)
			w.label(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: onlyNode}}, onlyLabel, "true")
			for name, f := range groveFaults() {
				room := w.room(name)
				room.commit(f)
				room.shows(f)
			}
		})
		t.Run("quickstart", func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, grove)
			w.apply(quickstart)
			dgd := w.ready("quickstart")
			if got := dgd.Status.Services["decode"].ComponentKind; got != v1alpha1.ComponentKindPodClique {
				t.Errorf("decode runs as %s", got)
			}
			if got := dgd.Annotations[v1alpha1.AnnotationWorkloadProvider]; got != v1alpha1.WorkloadProviderGrove {
				t.Errorf("provider %q is recorded", got)
			}
			w.answers(w.frontendURL(dgd))
		})
		t.Run("workers are rolled out by generations", func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, grove)
			id := w.rollsOutByGenerations("Grove")
			var sets grovev1alpha1.PodCliqueSetList
			if err := w.cluster.Client.List(w.ctx, &sets, client.InNamespace(w.namespace)); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, set := range sets.Items {
				names = append(names, set.Name)
			}
			if diff := cmp.Diff([]string{"quickstart", "quickstart-" + id}, names); diff != "" {
				t.Errorf("PodCliqueSets (-want +got):\n%s", diff)
			}
		})
		for _, name := range spanning {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				newWorldOn(t, grove).spans(name, v1alpha1.ComponentKindPodCliqueScalingGroup)
			})
		}
		for _, m := range manifestsOf(t, corpus.All(t)) {
			if !slices.ContainsFunc(m.graphs, spansNodes) {
				continue
			}
			t.Run(strings.ReplaceAll(m.file, "/", "_"), func(t *testing.T) {
				t.Parallel()
				deploy(newWorldOn(t, grove), m)
			})
		}
	})
}

// groveFaults are those that Grove tells of in its own way: what it could not
// make, and gangs.
func groveFaults() map[string]aFault {
	quota, gang, beneath := "a quota that is used up", "a group of nodes that is short by one", "a quota that is too small for a group of nodes"
	short := faults[gang]
	short.message = strings.ReplaceAll(short.message, "fault-worker-0", "fault-0-worker-0")
	return map[string]aFault{
		quota: faults[quota], gang: short,
		"what is refused under a scaling group is reported": faults[beneath],
	}
}

func spansNodes(dgd *v1alpha1.DynamoGraphDeployment) bool {
	for _, service := range dgd.Spec.SortedServices() {
		if service.Multinode != nil {
			return true
		}
	}
	return false
}
