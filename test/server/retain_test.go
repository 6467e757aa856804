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

// TestClaimsAreRetainedFromTheMomentBeforeTheDeletion: nvidia.com/retain-pvcs counts
// if it is there when the graph is deleted, whether or not the operator has looked
// since; also for a claim that the graph no longer mentions. Without it the claims
// stay the graph's and go with it.
func TestClaimsAreRetainedFromTheMomentBeforeTheDeletion(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	claim := func(name string) v1alpha1.PVC {
		return v1alpha1.PVC{Name: name, Create: new(true), StorageClass: "fast", Size: new(resource.MustParse("1Gi")), VolumeAccessMode: corev1.ReadWriteMany}
	}
	retained, taken, none := w.graph("retained", "decode"), w.graph("taken", "decode"), w.graph("none", "decode")
	retained.Spec.PVCs = []v1alpha1.PVC{claim("models"), claim("earlier")}
	taken.Spec.PVCs = []v1alpha1.PVC{claim("cache")}
	for _, dgd := range []*v1alpha1.DynamoGraphDeployment{retained, taken, none} {
		w.create(dgd)
		exists(w, &v1alpha1.DynamoComponentDeployment{}, dgd.Name+"-decode")
	}
	for _, name := range []string{"models", "earlier", "cache"} {
		exists(w, &corev1.PersistentVolumeClaim{}, name)
	}
	if held := get(w, &v1alpha1.DynamoGraphDeployment{}, "none"); len(held.Finalizers) > 0 {
		t.Errorf("a graph without claims is held by %v", held.Finalizers)
	}
	w.stop(o)
	w.merge(retained, `{"metadata":{"annotations":{"nvidia.com/retain-pvcs":"true"}},"spec":{"pvcs":[{"name":"models","create":true,"storageClass":"fast","size":"1Gi","volumeAccessMode":"ReadWriteMany"}]}}`)
	w.delete(retained)
	w.delete(taken)
	w.operate(silent)
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "retained")
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "taken")
	for name, owners := range map[string]int{"models": 0, "earlier": 0, "cache": 1} {
		if c := get(w, &corev1.PersistentVolumeClaim{}, name); len(c.OwnerReferences) != owners {
			t.Errorf("claim %s goes with %v", name, c.OwnerReferences)
		}
	}
}
