package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAGraphIsDeletedTheWayItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dgd := w.restful("g")
			w.create(dgd)
			w.ready("g")
			w.settled()
			mark := w.mark()
			if err := w.cluster.Client.Delete(w.ctx, dgd, client.PropagationPolicy(how)); err != nil {
				t.Fatal(err)
			}
			w.gone(&v1alpha1.DynamoGraphDeployment{}, "g")
			if how == metav1.DeletePropagationOrphan {
				w.goOnWithout()
			} else {
				w.empty()
			}
			w.nothingMadeAfterDeletion(mark)
		})
	}
}

// goOnWithout sees that orphans run on and are still looked after.
func (w world) goOnWithout() {
	w.Helper()
	dcd := &v1alpha1.DynamoComponentDeployment{}
	w.eventually("a component without an owner", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("g-decode"), dcd); err != nil {
			return err
		}
		if len(dcd.OwnerReferences) > 0 {
			return fmt.Errorf("owners %v", dcd.OwnerReferences)
		}
		return nil
	})
	w.settled()
	d := &appsv1.Deployment{}
	if err := w.cluster.Client.Get(w.ctx, w.key("g-decode"), d); err != nil {
		w.Fatal(err)
	}
	if d.Status.ReadyReplicas != 1 || d.DeletionTimestamp != nil {
		w.Errorf("status %+v", d.Status)
	}
}
