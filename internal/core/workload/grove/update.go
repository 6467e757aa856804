package grove

import (
	"cmp"
	"slices"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Grove updates the cliques of a set one after the other, some time after the set
// was written. Until its turn comes a clique looks as well as before, and where
// only annotations change even its generation stays. What tells is the set:
//
//	written ----> rolling update started ----> ... ended, generation observed
//	              and its hash known               and all have that
//
// and, before that, whether a clique has the set's template and all its pods are
// made from it.

// Updating reports whether Grove still carries out the last change of a graph's
// PodCliqueSet. A template that changes again meanwhile can leave cliques behind.
func (Builder) Updating(g *graph.Graph, s snapshot.Snapshot) bool {
	return slices.ContainsFunc(sets(g), func(name string) bool {
		set, found := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, name)
		return found && (s.Outdated("PodCliqueSet", name) || updating(set, s))
	})
}

func updating(set *grovev1alpha1.PodCliqueSet, s snapshot.Snapshot) bool {
	observed, progress := set.Status.ObservedGeneration, set.Status.RollingUpdateProgress
	return observed == nil || *observed < set.Generation || (progress != nil && progress.UpdateEndedAt == nil) || behind(set, s)
}

// behind reports whether a clique or group of a set is not through with what the set now
// says. Later releases of Grove tell the progress of an update in a field that our
// module for its API does not know; by these hashes each of them finds that it has ended.
func behind(set *grovev1alpha1.PodCliqueSet, s snapshot.Snapshot) bool {
	now := set.Status.CurrentGenerationHash
	return now != nil && slices.ContainsFunc(s.Beneath, func(object graph.Object) bool {
		through := carriedOut(object)
		return through != nil && *through != *now && object.GetDeletionTimestamp() == nil && SetOf(object) == set.Name
	})
}

// carriedOut is the hash of what a set said when a clique or group of it was last through;
// nil if it never was. A group answers for its cliques.
func carriedOut(object graph.Object) *string {
	switch o := object.(type) {
	case *grovev1alpha1.PodCliqueScalingGroup:
		return o.Status.CurrentPodCliqueSetGenerationHash
	case *grovev1alpha1.PodClique:
		if o.Labels[common.LabelPodCliqueScalingGroup] == "" {
			return o.Status.CurrentPodCliqueSetGenerationHash
		}
	}
	return nil
}

// rolledOut reports whether every clique of a component has the template that the
// set now gives it, and runs nothing else.
func rolledOut(c graph.Component, set *grovev1alpha1.PodCliqueSet, s snapshot.Snapshot) bool {
	live := cliquesOf(c, s)
	groups := int32(1)
	if grouped(c) {
		groups = c.Replicas
	}
	var templates int32
	for _, template := range set.Spec.Template.Cliques {
		if template.Labels[v1alpha1.LabelComponent] != c.Name {
			continue
		}
		templates++
		for _, clique := range live {
			if clique.Spec.RoleName == template.Spec.RoleName && !runs(clique, template) {
				return false
			}
		}
	}
	return templates > 0 && int32(len(live)) == templates*groups
}

// runs reports whether a clique has a template and all its pods are made from it.
func runs(clique *grovev1alpha1.PodClique, template *grovev1alpha1.PodCliqueTemplateSpec) bool {
	for key, value := range template.Annotations {
		if clique.Annotations[key] != value {
			return false
		}
	}
	hash, progress := clique.Status.CurrentPodTemplateHash, clique.Status.RollingUpdateProgress
	return equality.Semantic.DeepEqual(clique.Spec.PodSpec, template.Spec.PodSpec) &&
		hash != nil && *hash == clique.Labels[common.LabelPodTemplateHash] &&
		(progress == nil || progress.UpdateEndedAt != nil)
}

// Mark implements workload.GraphBuilder.
func (Builder) Mark(_ *graph.Graph, c graph.Component, s snapshot.Snapshot) (id string, made bool) {
	set, found := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, c.CliqueSet)
	if !found {
		return "", false
	}
	for _, clique := range set.Spec.Template.Cliques {
		if serviceOf(clique) == c.Name {
			return clique.Annotations[v1alpha1.AnnotationRestartAt], true
		}
	}
	return "", false
}

// cliquesOf are the live cliques of a component in its set, those of a scaling group
// among them, by name.
func cliquesOf(c graph.Component, s snapshot.Snapshot) []*grovev1alpha1.PodClique {
	var all []*grovev1alpha1.PodClique
	for _, object := range s.Beneath {
		clique, ok := object.(*grovev1alpha1.PodClique)
		if ok && clique.Labels[v1alpha1.LabelComponent] == c.Name && clique.DeletionTimestamp == nil && cmp.Or(SetOf(clique), c.CliqueSet) == c.CliqueSet {
			all = append(all, clique)
		}
	}
	slices.SortFunc(all, func(a, b *grovev1alpha1.PodClique) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
