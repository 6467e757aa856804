package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// TestGraphsRunOnGrove runs graphs through Grove's API. Grove's own operator
// cannot be built here; a stand-in makes the pods.
func TestGraphsRunOnGrove(t *testing.T) {
	grove := need(t, grove)
	t.Run("graphs", func(t *testing.T) {
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
		for _, name := range spanning {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				newWorldOn(t, grove).spans(name, v1alpha1.ComponentKindPodCliqueScalingGroup)
			})
		}
		files := map[string][]corpus.Document{}
		for _, d := range corpus.All(t) {
			files[d.File] = append(files[d.File], d)
		}
		for file, documents := range files {
			graphs := graphsOf(t, documents)
			if !slices.ContainsFunc(graphs, spansNodes) || leftOut(graphs) != "" {
				continue
			}
			t.Run(strings.ReplaceAll(file, "/", "_"), func(t *testing.T) {
				t.Parallel()
				deploy(newWorldOn(t, grove), documents, graphs)
			})
		}
	})
}

func spansNodes(dgd *v1alpha1.DynamoGraphDeployment) bool {
	for _, service := range dgd.Spec.SortedServices() {
		if service.Multinode != nil {
			return true
		}
	}
	return false
}
