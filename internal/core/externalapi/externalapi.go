// Package externalapi has Go types for kinds of other projects of which we write a
// part: the fields that we own and no more, so that their modules stay out of
// ours. Each kind's spec is defined beside the builder that fills it.
package externalapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Spec is the part of a foreign kind that we write.
type Spec[S any] interface {
	DeepCopy() S
}

// Object is an object of a foreign kind.
type Object[S Spec[S]] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec S `json:"spec"`
}

// List is a list of them.
type List[S Spec[S]] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Object[S] `json:"items"`
}

// AddToScheme makes a kind known to clients.
func AddToScheme[S Spec[S]](s *runtime.Scheme, kind schema.GroupVersionKind) {
	s.AddKnownTypeWithName(kind, &Object[S]{})
	s.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &List[S]{})
	metav1.AddToGroupVersion(s, kind.GroupVersion())
}

// DeepCopyObject implements runtime.Object.
func (in *Object[S]) DeepCopyObject() runtime.Object {
	return in.copy()
}

func (in *Object[S]) copy() *Object[S] {
	out := &Object[S]{TypeMeta: in.TypeMeta, Spec: in.Spec.DeepCopy()}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject implements runtime.Object.
func (in *List[S]) DeepCopyObject() runtime.Object {
	out := &List[S]{TypeMeta: in.TypeMeta, Items: make([]Object[S], len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items[i] = *in.Items[i].copy()
	}
	return out
}
