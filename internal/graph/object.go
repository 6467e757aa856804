package graph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any Kubernetes object with metadata. Clients satisfy it with their
// own object type; pure code needs no more than this.
type Object interface {
	metav1.Object
	runtime.Object
}
