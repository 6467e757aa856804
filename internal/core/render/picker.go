package render

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/externalapi"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/pickerconfig"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// picker renders what a gateway's endpoint picker needs beside its workload: its
// configuration, unless the user brings it, and the pool that it picks from.
func picker(g *graph.Graph, have snapshot.Capabilities) ([]graph.Object, error) {
	c, found := g.Picker()
	if !found || c.Picker == nil {
		return nil, nil
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: g.Namespace, Labels: map[string]string{
			v1alpha1.LabelGraphName:     g.Name,
			v1alpha1.LabelComponent:     c.Name,
			v1alpha1.LabelComponentType: string(graph.RoleEPP),
		}}
	}
	var objects []graph.Object
	if c.Picker.Inline != nil {
		text, err := pickerconfig.File(c.Picker.Inline)
		if err != nil {
			return nil, fmt.Errorf("service %s: eppConfig.config: %w", c.Name, err)
		}
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: meta(graph.PickerConfigMap(g.Name)),
			Data:       map[string]string{graph.PickerConfigKey: text},
		})
	}
	if !have.All(snapshot.APIInference) {
		return objects, fault.New(fault.Unsupported, v1alpha1.ReasonOrchestratorUnavailable,
			"service %s picks endpoints for a gateway; install the Gateway API inference extension", c.Name)
	}
	return append(objects, &InferencePool{
		ObjectMeta: meta(graph.PickerPool(g.Name)),
		Spec: InferencePoolSpec{
			TargetPorts:       []PoolPort{{Number: pod.PortHTTP}},
			Selector:          PoolSelector{MatchLabels: poolSelector(c)},
			EndpointPickerRef: EndpointPickerRef{Kind: "Service", Name: c.ServiceName, Port: PoolPort{Number: pod.PortPicker}},
		},
	}), nil
}

// poolSelector are the labels of the pods that a gateway sends requests to.
func poolSelector(c graph.Component) map[string]string {
	if contract.Of(c.Contract).Objects.PoolOfWorkers {
		return map[string]string{v1alpha1.LabelComponentClass: v1alpha1.ComponentClassWorker, v1alpha1.LabelDynamoNamespace: c.DynamoNamespace}
	}
	return map[string]string{v1alpha1.LabelComponentType: string(graph.RoleFrontend), v1alpha1.LabelDynamoNamespace: c.DynamoNamespace}
}

// InferencePoolKind is the gateway's kind for endpoints that a picker picks from.
var InferencePoolKind = schema.GroupVersionKind{Group: "inference.networking.k8s.io", Version: "v1", Kind: "InferencePool"}

type (
	InferencePool     = externalapi.Object[InferencePoolSpec]
	InferencePoolList = externalapi.List[InferencePoolSpec]
)

// InferencePoolSpec is the part of a pool that we write.
type InferencePoolSpec struct {
	TargetPorts       []PoolPort        `json:"targetPorts,omitempty"`
	Selector          PoolSelector      `json:"selector,omitzero"`
	EndpointPickerRef EndpointPickerRef `json:"endpointPickerRef,omitzero"`
}

type (
	// PoolPort is a port by number.
	PoolPort struct {
		Number int32 `json:"number,omitempty"`
	}
	// PoolSelector is by label.
	PoolSelector struct {
		MatchLabels map[string]string `json:"matchLabels,omitempty"`
	}
	// EndpointPickerRef is the picker's Service.
	EndpointPickerRef struct {
		Kind string   `json:"kind,omitempty"`
		Name string   `json:"name,omitempty"`
		Port PoolPort `json:"port,omitzero"`
	}
)

// DeepCopy implements foreign.Spec.
func (s InferencePoolSpec) DeepCopy() InferencePoolSpec {
	s.TargetPorts = append([]PoolPort(nil), s.TargetPorts...)
	s.Selector.MatchLabels = maps.Clone(s.Selector.MatchLabels)
	return s
}
