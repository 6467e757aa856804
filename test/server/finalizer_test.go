package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestAGraphWhoseStoreIsGoneIsDeletedInTheEnd asks for etcd where there is none.
func TestAGraphWhoseStoreIsGoneIsDeletedInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.operate(silent + fmt.Sprintf(`
discovery: {backend: etcd, cleanupDeadline: 3s}
endpoints: {etcd: "unix://%s"}
`, filepath.Join(t.TempDir(), "nobody")))
	dgd := w.graph("g", "decode")
	w.create(dgd)
	dcd := &v1alpha1.DynamoComponentDeployment{}
	w.eventually("the component to be held", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("g-decode"), dcd); err != nil {
			return err
		}
		if !slices.Contains(dcd.Finalizers, v1alpha1.Finalizer) {
			return errors.New("no finalizer")
		}
		return nil
	})
	w.delete(dgd, client.PropagationPolicy(metav1.DeletePropagationBackground))
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "g")
	w.delete(dcd) // as the garbage collector does
	w.gone(dcd, "g-decode")
	w.eventually("an event about the keys that are left", func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason == "KeysLeft" && e.Regarding.Name == "g-decode" }) {
			return fmt.Errorf("none among %d events", len(list.Items))
		}
		return nil
	})
}
