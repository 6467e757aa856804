package lws

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodGroup is the part of Volcano's kind that we write: how many pods have to
// be placed together.
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodGroupSpec `json:"spec,omitempty"`
}

// PodGroupSpec is the size of a gang.
type PodGroupSpec struct {
	MinMember int32 `json:"minMember,omitempty"`
}

// PodGroupList is a list of them.
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodGroup `json:"items"`
}

// PodGroupVersion is the group and version of PodGroup.
var PodGroupVersion = schema.GroupVersion{Group: "scheduling.volcano.sh", Version: "v1beta1"}

// AddPodGroupToScheme makes the kind known to a client.
func AddPodGroupToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(PodGroupVersion, &PodGroup{}, &PodGroupList{})
	metav1.AddToGroupVersion(s, PodGroupVersion)
	return nil
}

// DeepCopyObject implements runtime.Object.
func (in *PodGroup) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (in *PodGroupList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]PodGroup, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*PodGroup)
	}
	return &out
}
