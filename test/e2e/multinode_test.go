package e2e

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// spanning are graphs of ours whose engines span nodes, by name.
var spanning = []string{"vllm-ray", "vllm-data-parallel"}

func TestEnginesThatSpanNodesRunAsLeaderWorkerSets(t *testing.T) {
	for _, name := range spanning {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.spans(name, v1alpha1.ComponentKindLeaderWorkerSet)
		})
	}
}

// spans deploys one of those graphs and sees it run as a kind, and answer.
func (w world) spans(name string, as v1alpha1.ComponentKind) {
	w.Helper()
	w.apply("../../examples/" + name + ".yaml")
	dgd := w.ready(name)
	if got := dgd.Status.Services["decode"].ComponentKind; got != as {
		w.Errorf("decode runs as %s, want %s", got, as)
	}
	w.answers(w.frontendURL(dgd))
}
