package fakegrove

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ai-dynamo/grove/operator/api/common"
	"github.com/ai-dynamo/grove/operator/api/common/constants"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podName(clique string, index int) string { return fmt.Sprintf("%s-%d", clique, index) }

// pod is the one with that index in a clique. Its host name is its own name, so that peers find it below the Service.
func (p place) pod(clique *grovev1alpha1.PodClique, index int) *corev1.Pod {
	labels := maps.Clone(clique.Labels)
	delete(labels, common.LabelComponentKey)
	delete(labels, common.LabelAppNameKey)
	labels[common.LabelPodClique] = clique.Name
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.set.Namespace, Name: podName(clique.Name, index),
			Labels: labels, Annotations: maps.Clone(clique.Annotations),
			OwnerReferences: ownedBy(clique, "PodClique"),
		},
		Spec: *clique.Spec.PodSpec.DeepCopy(),
	}
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = serviceName(p.set, p.replica)
	if class := p.set.Spec.Template.PriorityClassName; class != "" {
		pod.Spec.PriorityClassName = class
	}
	env := p.env(clique, index)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			// First, because variables of the template refer to them.
			containers[i].Env = slices.Concat(env, containers[i].Env)
		}
	}
	return pod
}

func (p place) env(clique *grovev1alpha1.PodClique, index int) []corev1.EnvVar {
	service := common.GenerateHeadlessServiceAddress(common.ResourceNameReplica{Name: p.set.Name, Replica: p.replica}, p.set.Namespace)
	env := []corev1.EnvVar{
		{Name: constants.EnvVarPodCliqueSetName, Value: p.set.Name},
		{Name: constants.EnvVarPodCliqueSetIndex, Value: strconv.Itoa(p.replica)},
		{Name: constants.EnvVarPodCliqueName, Value: clique.Name},
		{Name: constants.EnvVarHeadlessService, Value: service},
		{Name: constants.EnvVarPodIndex, Value: strconv.Itoa(index)},
	}
	if p.group == nil {
		return env
	}
	pods := 0
	for _, template := range p.set.Spec.Template.Cliques {
		if slices.Contains(p.group.Spec.CliqueNames, template.Name) {
			pods += int(template.Spec.Replicas)
		}
	}
	return append(env,
		corev1.EnvVar{Name: constants.EnvVarPodCliqueScalingGroupName, Value: p.group.Name},
		corev1.EnvVar{Name: constants.EnvVarPodCliqueScalingGroupIndex, Value: strconv.Itoa(p.groupReplica)},
		corev1.EnvVar{Name: constants.EnvVarPodCliqueScalingGroupTemplateNumPods, Value: strconv.Itoa(pods)},
	)
}
