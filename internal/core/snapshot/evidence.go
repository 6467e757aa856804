package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Evidence is what was seen of the pods of one service, and of what they need.
type Evidence struct {
	// Pods are in the order of their names. Only what tells how they are is
	// there.
	Pods []corev1.Pod
	// Refused are pods that were to be made and that the API server refused.
	Refused []Refusal
	// Absent are objects that pods refer to and that do not exist.
	Absent []graph.Ref
	// Unbound are claims of the pods that have no volume.
	Unbound []Claim
	// Complaints are warnings about the pods, in a stable order.
	Complaints []Complaint
	// LastLines are the last lines that containers printed before they ended.
	LastLines map[ContainerKey]string
}

// Of is the evidence about one service of several.
func (e Evidence) Of(service string) Evidence {
	one := e
	one.Pods = nil
	for _, pod := range e.Pods {
		if pod.Labels[v1alpha1.LabelComponent] == service {
			one.Pods = append(one.Pods, pod)
		}
	}
	return one
}

// Refusal is what an API server answered to whoever was to make a pod.
type Refusal struct {
	// By is who asked, such as Deployment/decode.
	By      string
	Message string
}

// Claim is a volume claim without a volume.
type Claim struct {
	Name string
	// Class is the StorageClass that the claim names; empty if it names none.
	Class string
	// ClassAbsent says that no such class exists.
	ClassAbsent bool
}

// Complaint is a warning that somebody gave about a pod.
type Complaint struct {
	Pod types.UID
	// Container is empty for a warning about the whole pod.
	Container string
	Reason    string
	Message   string
}

// ContainerKey names a container of a pod.
type ContainerKey struct {
	Pod       types.UID
	Container string
}
