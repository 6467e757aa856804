package render

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// claims renders the volume claims that a graph asks to be created. They hold
// data, so they are made once and never changed. Whether they go with the graph is
// decided when it is deleted.
func claims(g *graph.Graph) []graph.Desired {
	var wanted []graph.Desired
	for _, c := range g.Claims {
		if !c.Create {
			continue
		}
		wanted = append(wanted, graph.Desired{Ownership: graph.OwnershipByUID, CreateOnly: true, Object: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: g.Namespace},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{c.AccessMode},
				StorageClassName: new(c.StorageClass),
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: c.Size}},
			},
		}})
	}
	return wanted
}
