package server

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func created(name string) v1alpha1.PVC {
	return v1alpha1.PVC{Name: name, Create: new(true), StorageClass: "fast", Size: new(resource.MustParse("1Gi")), VolumeAccessMode: corev1.ReadWriteMany}
}

// TestAClaimHasNoOwnerThatTheGarbageCollectorCouldDeleteItFor, neither one that is
// created nor one that an earlier operator, or the original, made with a reference.
func TestAClaimHasNoOwnerThatTheGarbageCollectorCouldDeleteItFor(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	dgd := w.graph("g", "decode")
	dgd.Spec.PVCs = []v1alpha1.PVC{created("models"), created("earlier")}
	w.create(dgd)
	for _, name := range []string{"models", "earlier"} {
		claim := exists(w, &corev1.PersistentVolumeClaim{}, name)
		if len(claim.OwnerReferences) > 0 || claim.Labels[v1alpha1.LabelGraphUID] != string(dgd.UID) || claim.Labels[v1alpha1.LabelGraphName] != "g" {
			t.Errorf("claim %s has owners %v, labels %v", name, claim.OwnerReferences, claim.Labels)
		}
	}
	w.stop(o)
	earlier := get(w, &corev1.PersistentVolumeClaim{}, "earlier")
	w.merge(earlier, fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null,"mine":"too"},"ownerReferences":[{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoGraphDeployment","name":"g","uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`,
		v1alpha1.LabelGraphUID, v1alpha1.LabelGraphName, dgd.UID))
	// A claim that the graph no longer mentions is the graph's all the same.
	w.merge(dgd, `{"spec":{"pvcs":[{"name":"models","create":true,"storageClass":"fast","size":"1Gi","volumeAccessMode":"ReadWriteMany"}]}}`)
	w.operate(silent)
	w.eventually("the claim to have a label in place of an owner", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("earlier"), earlier); err != nil {
			return err
		}
		if len(earlier.OwnerReferences) > 0 || earlier.Labels[v1alpha1.LabelGraphUID] != string(dgd.UID) || earlier.Labels["mine"] != "too" {
			return fmt.Errorf("owners %v, labels %v", earlier.OwnerReferences, earlier.Labels)
		}
		return nil
	})
}

// TestClaimsAreRetainedIfTheAnnotationIsThereAtTheDeletion, whether or not the operator
// has looked since; also a claim that the graph no longer mentions. Without it they are
// deleted, but never one that was there before the graph. With the garbage collector:
// TestOnABareCluster.
func TestClaimsAreRetainedIfTheAnnotationIsThereAtTheDeletion(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	w.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: w.graph("foreign").ObjectMeta,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	retained, taken, none := w.graph("retained", "decode"), w.graph("taken", "decode"), w.graph("none", "decode")
	retained.Spec.PVCs = []v1alpha1.PVC{created("models"), created("earlier")}
	taken.Spec.PVCs = []v1alpha1.PVC{created("cache"), created("foreign")}
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
	for name, stays := range map[string]bool{"models": true, "earlier": true, "cache": false, "foreign": true} {
		claim := &corev1.PersistentVolumeClaim{}
		err := cluster.Client.Get(w.ctx, w.key(name), claim)
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		// Nothing here takes the finalizer off that protects claims in use.
		if there := err == nil && claim.DeletionTimestamp == nil; there != stays || len(claim.OwnerReferences) > 0 {
			t.Errorf("claim %s: there %v, owners %v", name, there, claim.OwnerReferences)
		}
	}
}

// TestAClaimIsDeletedByNobodyButTheGraphItWasCreatedFor: a graph of the same name that
// comes later uses a claim that was retained, and leaves it.
func TestAClaimIsDeletedByNobodyButTheGraphItWasCreatedFor(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	first := w.graph("g", "decode")
	first.Annotations = map[string]string{v1alpha1.AnnotationRetainPVCs: "true"}
	first.Spec.PVCs = []v1alpha1.PVC{created("models")}
	w.create(first)
	kept := exists(w, &corev1.PersistentVolumeClaim{}, "models")
	w.delete(first)
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "g")
	w.collect()
	second := w.graph("g", "decode")
	second.Spec.PVCs = []v1alpha1.PVC{created("models"), created("own")}
	w.create(second)
	exists(w, &corev1.PersistentVolumeClaim{}, "own")
	w.delete(second)
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "g")
	if now := get(w, &corev1.PersistentVolumeClaim{}, "models"); now.UID != kept.UID || now.DeletionTimestamp != nil {
		t.Errorf("the claim of an earlier graph is deleted at %v", now.DeletionTimestamp)
	}
	own := &corev1.PersistentVolumeClaim{}
	if err := cluster.Client.Get(w.ctx, w.key("own"), own); err == nil && own.DeletionTimestamp == nil {
		t.Error("a claim that was created for the graph is left")
	}
}
