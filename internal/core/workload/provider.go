package workload

import (
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Provider is which pathway runs a graph: components of its own, or Grove.
type Provider string

const (
	ProviderComponent Provider = v1alpha1.WorkloadProviderComponent
	ProviderGrove     Provider = v1alpha1.WorkloadProviderGrove
)

// Choose picks the provider of a graph. A choice that was made stands, whatever
// is installed later: only a user who changes nvidia.com/enable-grove moves a
// running graph. One that earlier operators left without a record is what its
// children show.
func Choose(annotations map[string]string, have snapshot.Capabilities, running Provider) Provider {
	chosen := Chosen(annotations)
	switch {
	case chosen != "":
		return chosen
	case annotations[v1alpha1.AnnotationWorkloadProvider] == "" && running != "":
		return running
	case have.All(snapshot.APIGrove):
		return ProviderGrove
	default:
		return ProviderComponent
	}
}

// Chosen is the provider of a graph as far as its annotations tell; empty where it
// depends on the cluster.
func Chosen(annotations map[string]string) Provider {
	wish := annotations[v1alpha1.AnnotationEnableGrove]
	recorded := Provider(annotations[v1alpha1.AnnotationWorkloadProvider])
	under, known := annotations[v1alpha1.AnnotationWorkloadChoice]
	switch {
	case strings.EqualFold(wish, "false"):
		return ProviderComponent
	case recorded != "" && (!known || under == wish):
		return recorded
	default:
		return ""
	}
}

// Record is what has to stand in a graph's annotations for Choose to give the
// same answer from now on.
func Record(annotations map[string]string, chosen Provider) map[string]string {
	return map[string]string{
		v1alpha1.AnnotationWorkloadProvider: string(chosen),
		v1alpha1.AnnotationWorkloadChoice:   annotations[v1alpha1.AnnotationEnableGrove],
	}
}
