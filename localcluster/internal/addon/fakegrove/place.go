package fakegrove

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
)

// place is where one clique of the template stands in the set: in a replica of the set or, within that, in a replica of a
// scaling group.
type place struct {
	set          *grovev1alpha1.PodCliqueSet
	replica      int
	group        *grovev1alpha1.PodCliqueScalingGroup // nil for a clique that scales alone
	groupReplica int
	order        int // in the template
}

// places lists the cliques that the set should have. A group's live replicas count, so a group that is not there yet has
// none.
func (w world) places() []place {
	var all []place
	for replica := range int(w.set.Spec.Replicas) {
		for order, template := range w.set.Spec.Template.Cliques {
			config := groupOf(w.set, template.Name)
			if config == nil {
				all = append(all, place{set: w.set, replica: replica, order: order})
				continue
			}
			group := w.groups[groupName(w.set, replica, config)]
			if group == nil || group.DeletionTimestamp != nil {
				continue
			}
			for j := range int(group.Spec.Replicas) {
				all = append(all, place{set: w.set, replica: replica, group: group, groupReplica: j, order: order})
			}
		}
	}
	return all
}

func (p place) template() *grovev1alpha1.PodCliqueTemplateSpec {
	return p.set.Spec.Template.Cliques[p.order]
}

func (p place) name() string {
	if p.group != nil {
		return cliqueName(p.group.Name, p.groupReplica, p.template().Name)
	}
	return cliqueName(p.set.Name, p.replica, p.template().Name)
}

// gang is the name that Grove would schedule the clique's pods under.
func (p place) gang() string {
	if p.group != nil {
		return common.GeneratePodGangNameForPodCliqueOwnedByPCSG(p.set, p.replica, p.group, p.groupReplica)
	}
	return common.GeneratePodGangNameForPodCliqueOwnedByPodCliqueSet(p.set, p.replica)
}

// startsAfter names the cliques whose pods must be ready first.
func (p place) startsAfter() []string {
	template := p.set.Spec.Template
	if template.StartupType == nil {
		return nil
	}
	var names []string
	switch *template.StartupType {
	case grovev1alpha1.CliqueStartupTypeExplicit:
		for _, name := range p.template().Spec.StartsAfter {
			names = append(names, p.resolve(name)...)
		}
	case grovev1alpha1.CliqueStartupTypeInOrder:
		if p.order > 0 {
			names = p.resolve(template.Cliques[p.order-1].Name)
		}
	}
	return names
}

// resolve turns a clique of the template into those that it means for this place: the one of the same replica of a
// shared group, or the guaranteed ones of another group.
func (p place) resolve(clique string) []string {
	config := groupOf(p.set, clique)
	switch {
	case config == nil:
		return []string{cliqueName(p.set.Name, p.replica, clique)}
	case p.group != nil && slices.Contains(config.CliqueNames, p.template().Name):
		return []string{cliqueName(p.group.Name, p.groupReplica, clique)}
	}
	var names []string
	for j := range int(orOne(config.MinAvailable)) {
		names = append(names, cliqueName(groupName(p.set, p.replica, config), j, clique))
	}
	return names
}

// revision changes with everything that a running pod cannot take over.
func (p place) revision() string {
	t := p.template()
	return hash(t.Labels, t.Annotations, t.Spec.PodSpec, p.set.Spec.Template.PriorityClassName)
}

// setRevision changes when any clique's does.
func setRevision(set *grovev1alpha1.PodCliqueSet) string {
	var revisions []string
	for order := range set.Spec.Template.Cliques {
		revisions = append(revisions, place{set: set, order: order}.revision())
	}
	return hash(revisions)
}

func hash(parts ...any) string {
	h := fnv.New64a()
	// These are plain API types, which always encode; maps are sorted by key.
	_ = json.NewEncoder(h).Encode(parts)
	return fmt.Sprintf("%016x", h.Sum64())
}

func groupOf(set *grovev1alpha1.PodCliqueSet, clique string) *grovev1alpha1.PodCliqueScalingGroupConfig {
	groups := set.Spec.Template.PodCliqueScalingGroupConfigs
	for i := range groups {
		if slices.Contains(groups[i].CliqueNames, clique) {
			return &groups[i]
		}
	}
	return nil
}

func groupName(set *grovev1alpha1.PodCliqueSet, replica int, config *grovev1alpha1.PodCliqueScalingGroupConfig) string {
	return common.GeneratePodCliqueScalingGroupName(common.ResourceNameReplica{Name: set.Name, Replica: replica}, config.Name)
}

func cliqueName(owner string, replica int, clique string) string {
	return common.GeneratePodCliqueName(common.ResourceNameReplica{Name: owner, Replica: replica}, clique)
}

func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
