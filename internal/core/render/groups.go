package render

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// groupObjects renders what pods of a graph refer to under the 1.x contract: the
// script by which workers of a group wait for their leader, and the templates of the
// claims on GPUs whose memory is shared. Among pods it is shared where the graph owns
// them; elsewhere nobody uses the template, which the original makes all the same.
func groupObjects(g *graph.Graph, have snapshot.Capabilities, owned bool) ([]graph.Object, error) {
	if g.Contract != graph.ContractV1 {
		return nil, nil
	}
	var objects []graph.Object
	if g.Waits() {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: graph.WaitScript(g.Name), Namespace: g.Namespace, Labels: map[string]string{v1alpha1.LabelGraphName: g.Name}},
			Data:       map[string]string{engine.WaitFile: engine.WaitScript},
		})
	}
	for _, c := range g.Components {
		switch known := have.All(snapshot.APIDevices); {
		case !c.SharesMemory(), !known && !owned && c.SharesAcrossPods():
			continue
		case !known:
			return objects, fault.New(fault.Unsupported, v1alpha1.ReasonOrchestratorUnavailable,
				"service %s shares the memory of GPUs that its pods claim; that takes Kubernetes 1.34 or newer, which serves resource.k8s.io/v1", c.Name)
		}
		objects = append(objects, &resourcev1.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: graph.DeviceTemplate(g.Name, c.Name), Namespace: g.Namespace},
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: c.GPUMemory.DeviceClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(c.Resources.GPUs),
				}}},
			}}},
		})
	}
	return objects, nil
}
