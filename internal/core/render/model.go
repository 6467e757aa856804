package render

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// modelServices render, for each base model that components serve, the headless
// Service over all of its endpoints. Its name says the model alone, so
// components and graphs of a namespace have it in common.
func modelServices(components []graph.Component) []graph.Desired {
	var wanted []graph.Desired
	seen := map[string]bool{}
	for _, c := range components {
		if c.Model == "" || seen[c.Model] {
			continue
		}
		seen[c.Model] = true
		hash := graph.ModelHash(c.Model)
		wanted = append(wanted, graph.Desired{Ownership: graph.OwnershipShared, Object: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Name: graph.ModelService(c.Model), Namespace: c.Namespace,
				Labels: map[string]string{
					v1alpha1.LabelBaseModelHash: hash,
					v1alpha1.LabelManagedBy:     v1alpha1.ManagedBy,
				},
				Annotations: map[string]string{v1alpha1.AnnotationBaseModel: c.Model},
			},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone,
				Selector:  map[string]string{v1alpha1.LabelBaseModelHash: hash},
				Ports: []corev1.ServicePort{{
					Name: pod.PortNameSystem, Port: pod.PortSystem, Protocol: corev1.ProtocolTCP,
					TargetPort: intstr.FromInt32(pod.PortSystem),
				}},
			},
		}})
	}
	return wanted
}
