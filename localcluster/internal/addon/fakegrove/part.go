package fakegrove

import (
	"maps"
	"strconv"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wantServices gives each replica of the set a name space for its pods.
func (w world) wantServices() []*corev1.Service {
	config := w.set.Spec.Template.HeadlessServiceConfig
	var all []*corev1.Service
	for replica := range int(w.set.Spec.Replicas) {
		labels := w.labels(replica)
		labels[common.LabelComponentKey] = common.LabelComponentNamePodCliqueSetReplicaHeadlessService
		all = append(all, &corev1.Service{
			ObjectMeta: w.meta(serviceName(w.set, replica), labels),
			Spec: corev1.ServiceSpec{
				ClusterIP:                corev1.ClusterIPNone,
				Selector:                 w.labels(replica),
				PublishNotReadyAddresses: config == nil || config.PublishNotReadyAddresses,
			},
		})
	}
	return all
}

func serviceName(set *grovev1alpha1.PodCliqueSet, replica int) string {
	return common.GenerateHeadlessServiceName(common.ResourceNameReplica{Name: set.Name, Replica: replica})
}

// wantGroups keeps the replicas of a live group: from its creation on, its scale is somebody else's business.
func (w world) wantGroups() []*grovev1alpha1.PodCliqueScalingGroup {
	var all []*grovev1alpha1.PodCliqueScalingGroup
	for replica := range int(w.set.Spec.Replicas) {
		configs := w.set.Spec.Template.PodCliqueScalingGroupConfigs
		for i := range configs {
			name := groupName(w.set, replica, &configs[i])
			labels := w.labels(replica)
			labels[common.LabelComponentKey] = common.LabelComponentNamePodCliqueScalingGroup
			labels[common.LabelAppNameKey] = name
			replicas := orOne(configs[i].Replicas)
			if live := w.groups[name]; live != nil {
				replicas = live.Spec.Replicas
			}
			all = append(all, &grovev1alpha1.PodCliqueScalingGroup{
				ObjectMeta: w.meta(name, labels),
				Spec: grovev1alpha1.PodCliqueScalingGroupSpec{
					Replicas: replicas, MinAvailable: new(orOne(configs[i].MinAvailable)), CliqueNames: configs[i].CliqueNames,
				},
			})
		}
	}
	return all
}

// wantCliques keeps the replicas of a live clique, unless it belongs to a group, which scales as a whole. One that is to
// have none is made with one, as Grove's admission has it. A clique of an older template stays as it is until its turn.
func (w world) wantCliques() []*grovev1alpha1.PodClique {
	var all []*grovev1alpha1.PodClique
	turn := w.turn()
	for _, p := range w.places() {
		meta := w.meta(p.name(), p.labels())
		meta.Annotations = p.template().Annotations
		meta.Labels[common.LabelComponentKey] = common.LabelComponentNamePodCliqueSetPodClique
		meta.Labels[common.LabelAppNameKey] = p.name()
		if p.group != nil {
			meta.Labels[common.LabelComponentKey] = common.LabelComponentNamePodCliqueScalingGroupPodClique
			meta.OwnerReferences = ownedBy(p.group, "PodCliqueScalingGroup")
		}
		spec := *p.template().Spec.DeepCopy()
		spec.Replicas = max(1, spec.Replicas)
		spec.StartsAfter = p.startsAfter()
		live := w.cliques[p.name()]
		if live != nil && !w.current(p, live) && p.unit() != turn {
			all = append(all, live.DeepCopy()) // its turn has not come
			continue
		}
		if live != nil && p.group == nil {
			spec.Replicas = live.Spec.Replicas
		}
		if spec.MinAvailable == nil {
			spec.MinAvailable = new(max(1, p.template().Spec.Replicas))
		}
		all = append(all, &grovev1alpha1.PodClique{ObjectMeta: meta, Spec: spec})
	}
	return all
}

// labels are those of a clique and of its pods.
func (p place) labels() map[string]string {
	labels := maps.Clone(p.template().Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, world{set: p.set}.labels(p.replica))
	labels[common.LabelPodGang] = p.gang()
	labels[common.LabelPodTemplateHash] = p.revision()
	if p.group != nil {
		labels[common.LabelPodCliqueScalingGroup] = p.group.Name
		labels[common.LabelPodCliqueScalingGroupReplicaIndex] = strconv.Itoa(p.groupReplica)
	}
	return labels
}

// labels are those of everything in a replica of the set.
func (w world) labels(replica int) map[string]string {
	labels := common.GetDefaultLabelsForPodCliqueSetManagedResources(w.set.Name)
	labels[common.LabelPodCliqueSetReplicaIndex] = strconv.Itoa(replica)
	return labels
}

func (w world) meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.set.Namespace, Name: name, Labels: labels, OwnerReferences: ownedBy(w.set, "PodCliqueSet"),
	}
}

// ownedBy lets the garbage collector delete what an owner leaves behind. Objects from a cache do not tell their kind.
func ownedBy(owner client.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, schema.GroupVersionKind{
		Group: grovev1alpha1.SchemeGroupVersion.Group, Version: grovev1alpha1.SchemeGroupVersion.Version, Kind: kind,
	})}
}
