// Package v1beta1 declares the kinds of the API group nvidia.com that have a
// second version: graphs, their components, scaling adapters and requests. A
// component is described by a pod template here, where v1alpha1 has fields of its
// own and a pod spec that goes over them.
//
// Objects are stored as v1alpha1; package internal/core/conversion turns one
// version into the other. The same rules hold as for v1alpha1: wire shape and
// schema only, and no imports beyond k8s.io/api and k8s.io/apimachinery.
//
// +kubebuilder:object:generate=true
// +groupName=nvidia.com
package v1beta1
