package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// claimCases are graphs of one claim each: how they are deleted, and whether the
// claim stays. Each graph and its claim have the name of their case.
var claimCases = []struct {
	name          string
	how           metav1.DeletionPropagation
	retain, stays bool
}{
	{name: "foreground-retain", how: metav1.DeletePropagationForeground, retain: true, stays: true},
	{name: "background-retain", how: metav1.DeletePropagationBackground, retain: true, stays: true},
	{name: "orphan-retain", how: metav1.DeletePropagationOrphan, retain: true, stays: true},
	{name: "foreground", how: metav1.DeletePropagationForeground},
	{name: "background", how: metav1.DeletePropagationBackground},
	{name: "orphan", how: metav1.DeletePropagationOrphan, stays: true},
}

// foreignClaim exists before a graph asks for it to be created.
const foreignClaim = "foreign"

func created(name string) v1alpha1.PVC {
	return v1alpha1.PVC{Name: name, Create: new(true), Size: new(resource.MustParse("1Gi")), StorageClass: "standard", VolumeAccessMode: "ReadWriteOnce"}
}

// createsClaims makes the graphs of claimCases and waits for their claims.
func (w world) createsClaims() {
	w.Helper()
	w.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: foreignClaim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("standard"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	for _, c := range claimCases {
		dgd := w.restful(c.name)
		delete(dgd.Spec.Services, "prefill")
		delete(dgd.Spec.Services, "Frontend")
		dgd.Spec.PVCs = []v1alpha1.PVC{created(c.name), created(foreignClaim)}
		w.create(dgd)
	}
	for _, c := range claimCases {
		w.eventually("claim and component of "+c.name, func(ctx context.Context) error {
			return errors.Join(w.cluster.Client.Get(ctx, w.key(c.name), &corev1.PersistentVolumeClaim{}),
				w.cluster.Client.Get(ctx, w.key(c.name+"-decode"), &v1alpha1.DynamoComponentDeployment{}))
		})
	}
}

// deletesGraphs deletes the graphs of claimCases, each in its way. The annotation
// comes a moment before.
func (w world) deletesGraphs() {
	w.Helper()
	for _, c := range claimCases {
		if c.retain {
			w.patchGraph(c.name, `{"metadata":{"annotations":{"nvidia.com/retain-pvcs":"true"}}}`)
		}
		if err := w.cluster.Client.Delete(w.ctx, w.graph(c.name), client.PropagationPolicy(c.how)); err != nil {
			w.Fatal(err)
		}
	}
}

// collected waits until the garbage collector has done what it can do while no
// operator runs.
func (w world) collected() {
	w.Helper()
	for _, c := range claimCases {
		w.eventually("the garbage collector to have seen "+c.name, func(ctx context.Context) error {
			dcd := &v1alpha1.DynamoComponentDeployment{}
			err := w.cluster.Client.Get(ctx, w.key(c.name+"-decode"), dcd)
			switch {
			case c.how == metav1.DeletePropagationForeground && err == nil:
				return errors.New("the component exists")
			case c.how == metav1.DeletePropagationOrphan && (len(dcd.OwnerReferences) > 0 || slices.Contains(w.graph(c.name).Finalizers, metav1.FinalizerOrphanDependents)):
				return fmt.Errorf("owners %v", dcd.OwnerReferences)
			case apierrors.IsNotFound(err):
				return nil
			}
			return err
		})
	}
}

// claimsAreAsAsked waits for the graphs of claimCases to go and looks for what they
// leave. They go after the decision about their claims, so what is there then stays.
func (w world) claimsAreAsAsked() {
	w.Helper()
	for _, c := range claimCases {
		w.gone(&v1alpha1.DynamoGraphDeployment{}, c.name)
		claim := &corev1.PersistentVolumeClaim{}
		if !c.stays {
			w.gone(claim, c.name)
			continue
		}
		if err := w.cluster.Client.Get(w.ctx, w.key(c.name), claim); err != nil {
			w.Errorf("claim of %s: %v", c.name, err)
		} else if claim.DeletionTimestamp != nil || len(claim.OwnerReferences) > 0 {
			w.Errorf("claim of %s is deleted at %v, owners %v", c.name, claim.DeletionTimestamp, claim.OwnerReferences)
		}
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.cluster.Client.Get(w.ctx, w.key(foreignClaim), claim); err != nil || claim.DeletionTimestamp != nil {
		w.Errorf("a claim that was there before the graphs was deleted: %v", err)
	}
}

// earlierClaim makes the claim of a case one of an earlier operator, or of the original:
// with an owner reference and without labels.
func (w world) earlierClaim(name string) {
	w.Helper()
	dgd, claim := w.graph(name), &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = w.namespace, name
	patch := fmt.Appendf(nil, `{"metadata":{"labels":null,"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`,
		v1alpha1.GroupName+"/v1alpha1", v1alpha1.KindDynamoGraphDeployment, name, dgd.UID)
	if err := w.cluster.Client.Patch(w.ctx, claim, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.Fatal(err)
	}
}

// releasesEarlierClaims waits until no claim of a case has an owner.
func (w world) releasesEarlierClaims() {
	w.Helper()
	w.eventually("claims without owners", func(ctx context.Context) error {
		for _, c := range claimCases {
			claim := &corev1.PersistentVolumeClaim{}
			if err := w.cluster.Client.Get(ctx, w.key(c.name), claim); err != nil {
				return err
			}
			if len(claim.OwnerReferences) > 0 {
				return fmt.Errorf("claim %s has owners %v", c.name, claim.OwnerReferences)
			}
		}
		return nil
	})
}
