package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// slowly is an operator that cannot get through before it is told to end: one
// object at a time, a few requests a second.
func (w world) slowly(drain string) string {
	return silent + fmt.Sprintf(`
controller: {workers: 1, qps: 5, burst: 60, timeout: 5m}
shutdown: {drain: %s, grace: 5m}
leaderElection: {enabled: true, id: %s, namespace: %s, leaseDuration: 30m, renewDeadline: 20m}
`, drain, w.namespace, installation.Namespace)
}

func TestAnOperatorThatEndsWorksOffWhatStandsInLine(t *testing.T) {
	w := newWorld(t)
	graphs := w.graphs(5, "a", "b")
	o := w.operate(w.slowly("5m"))
	w.begun()
	w.stop(o)
	w.released()
	for _, name := range graphs {
		if n := w.components(w.ctx)[name]; n != 2 {
			t.Errorf("graph %s has %d components", name, n)
		}
	}
}

func TestAnOperatorThatEndsLeavesNothingHalfDoneAndNothingIsLost(t *testing.T) {
	w := newWorld(t)
	graphs := w.graphs(12, "a", "b", "c", "d")
	o := w.operate(w.slowly("0s"))
	w.begun()
	w.stop(o)
	w.released()
	made := w.components(w.ctx)
	for _, name := range graphs {
		if n := made[name]; n != 0 && n != 4 {
			t.Errorf("graph %s was left with %d of 4 components", name, n)
		}
	}
	t.Logf("%d of %d graphs were made before the end", len(made), len(graphs))

	w.operate(silent)
	w.eventually("the next operator to make the rest", func(ctx context.Context) error {
		made := w.components(ctx)
		for _, name := range graphs {
			if made[name] != 4 {
				return fmt.Errorf("graph %s has %d components", name, made[name])
			}
		}
		return nil
	})
}

// graphs makes graphs of the same services before there is an operator.
func (w world) graphs(n int, services ...string) []string {
	w.Helper()
	var names []string
	for i := range n {
		dgd := w.graph(fmt.Sprintf("g%d", i), services...)
		w.create(dgd)
		names = append(names, dgd.Name)
	}
	return names
}

// begun waits until the operator has made the first component.
func (w world) begun() {
	w.Helper()
	w.eventually("a component", func(ctx context.Context) error {
		if len(w.components(ctx)) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
}

// components counts the components of each graph.
func (w world) components(ctx context.Context) map[string]int {
	w.Helper()
	var list v1alpha1.DynamoComponentDeploymentList
	if err := cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	count := map[string]int{}
	for _, dcd := range list.Items {
		count[dcd.Labels[v1alpha1.LabelGraphName]]++
	}
	return count
}

// released checks that nobody holds the lease of an operator that has ended.
func (w world) released() {
	w.Helper()
	lease := &coordinationv1.Lease{}
	if err := cluster.Client.Get(w.ctx, types.NamespacedName{Namespace: installation.Namespace, Name: w.namespace}, lease); err != nil {
		w.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		w.Errorf("the lease is still held by %s", *holder)
	}
}
