package graph

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Heir is the graph that a claim passes to when the one is deleted that it was created for:
// the first, by name, of those of its namespace that asked for the same claim to be created
// and stay. as says whether the claim is what the heir asks for; one that is not serves it,
// but cannot be its own.
func Heir(claim *corev1.PersistentVolumeClaim, graphs []*v1alpha1.DynamoGraphDeployment) (heir *v1alpha1.DynamoGraphDeployment, as bool) {
	byName := slices.SortedFunc(slices.Values(graphs), func(a, b *v1alpha1.DynamoGraphDeployment) int { return cmp.Compare(a.Name, b.Name) })
	for _, g := range byName {
		at := slices.IndexFunc(g.Spec.PVCs, func(p v1alpha1.PVC) bool { return p.Name == claim.Name && deref(p.Create, false) })
		if at < 0 || g.Namespace != claim.Namespace || g.DeletionTimestamp != nil || CreatedFor(claim, g) {
			continue
		}
		return g, asked(claim, g.Spec.PVCs[at])
	}
	return nil, false
}

// asked reports whether a claim is as one is to be created, or smaller, which it may outgrow.
func asked(claim *corev1.PersistentVolumeClaim, as v1alpha1.PVC) bool {
	has := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return deref(claim.Spec.StorageClassName, "") == as.StorageClass &&
		slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{as.VolumeAccessMode}) &&
		as.Size != nil && as.Size.Cmp(has) >= 0
}
