package lws

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dynamo-operator/dynamo-operator/internal/core/externalapi"
)

// PodGroupKind is Volcano's kind for pods that are placed together.
var PodGroupKind = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}

type (
	PodGroup     = externalapi.Object[PodGroupSpec]
	PodGroupList = externalapi.List[PodGroupSpec]
)

// PodGroupSpec is the size of a gang.
type PodGroupSpec struct {
	MinMember int32 `json:"minMember,omitempty"`
}

// DeepCopy implements foreign.Spec.
func (s PodGroupSpec) DeepCopy() PodGroupSpec { return s }
