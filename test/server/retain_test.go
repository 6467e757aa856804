package server

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestClaimsAreRetainedFromTheMomentTheyAreToBe: whether nvidia.com/retain-pvcs is
// there when a graph is created or comes later, its claims have no owner to go with.
func TestClaimsAreRetainedFromTheMomentTheyAreToBe(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "decode")
	dgd.Spec.PVCs = []v1alpha1.PVC{{
		Name: "models", Create: new(true), StorageClass: "fast", Size: new(resource.MustParse("1Gi")), VolumeAccessMode: corev1.ReadWriteMany,
	}}
	w.create(dgd)
	claim := exists(w, &corev1.PersistentVolumeClaim{}, "models")
	if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].UID != dgd.UID {
		t.Fatalf("without the annotation the claim goes with its graph, and has owners %v", claim.OwnerReferences)
	}
	w.merge(dgd, `{"metadata":{"annotations":{"nvidia.com/retain-pvcs":"true"}}}`)
	w.eventually("the claim to have no owner", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("models"), claim); err != nil {
			return err
		}
		if len(claim.OwnerReferences) > 0 {
			return errors.New("it has one")
		}
		return nil
	})

	born := w.graph("born", "decode")
	born.Annotations = map[string]string{v1alpha1.AnnotationRetainPVCs: "true"}
	born.Spec.PVCs = []v1alpha1.PVC{{
		Name: "kept", Create: new(true), StorageClass: "fast", Size: new(resource.MustParse("1Gi")), VolumeAccessMode: corev1.ReadWriteMany,
	}}
	w.create(born)
	if kept := exists(w, &corev1.PersistentVolumeClaim{}, "kept"); len(kept.OwnerReferences) > 0 {
		t.Errorf("a claim that is to be kept has owners %v", kept.OwnerReferences)
	}
}
