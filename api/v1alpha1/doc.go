// Package v1alpha1 declares the seven kinds of the API group nvidia.com: their
// wire shape, their schema rules and the well-known names on the objects the
// operator makes.
//
// It describes what can be said, not what it means: no defaults that depend on
// other fields, no rendering, no rule that needs more than one object. It
// imports k8s.io/api and k8s.io/apimachinery only, so that a client can use the
// types without inheriting the operator's dependencies.
//
// The CustomResourceDefinitions are generated from the markers here by
// hack/generate.sh.
//
// +kubebuilder:object:generate=true
// +groupName=nvidia.com
package v1alpha1
