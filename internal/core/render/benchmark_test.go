package render_test

import (
	"fmt"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// BenchmarkRender25Services renders both levels of a graph of 25 services: the
// work of one reconcile over the graph and one over each component.
func BenchmarkRender25Services(b *testing.B) {
	dgd := readGraph(b, "testdata/overrides/graph.yaml")
	services := map[string]*v1alpha1.SharedSpec{}
	for i := range 25 {
		services[fmt.Sprintf("Decode%02d", i)] = dgd.Spec.Services["Decode"].DeepCopy()
	}
	dgd.Spec.Services = services
	for b.Loop() {
		if _, _, err := renderBoth(dgd); err != nil {
			b.Fatal(err)
		}
	}
}
