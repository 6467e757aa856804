// Package change tells which changes of a worker take a generation of their own. It
// compares what was last told with what is wanted now, both as a user means them and
// both read by the same code: another operator, or another way to hash, changes
// nothing.
package change

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Breaking are the fields, sorted, for which a worker that was last told to be as
// stored has to become one of another generation to be as wanted: old and new ones
// are kept apart then, as images, arguments or caches may not fit each other. Whatever
// is not known to be harmless is such a field. None means that its workload can replace
// its pods by itself, if it has to at all.
func Breaking(stored, wanted graph.Component) []string {
	return differing("", harmful(stored), harmful(wanted))
}

// harmful is a worker as v1beta1 says it, with what that has no word for and without
// what workers do not tell each other.
func harmful(c graph.Component) map[string]any {
	spec := c.V1Beta1()
	spec.Replicas, spec.MinAvailable, spec.ScalingAdapter = nil, nil, nil
	if spec.PodTemplate != nil {
		t := *spec.PodTemplate
		t.Labels, t.Annotations = nil, nil
		t.Spec = sorted(t.Spec)
		spec.PodTemplate = &t
	}
	fields := map[string]any{}
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return map[string]any{} // what came as JSON can be encoded
	}
	fields["engine"], fields["executor"] = string(c.Engine), string(c.Executor)
	fields["discovery"] = string(c.Discovery)
	if contract.Of(c.Contract).Pods.Discovered { // elsewhere it has no effect, and is not told
		fields["discoveryMode"] = string(c.DiscoveryMode)
	}
	fields["subType"] = c.SubType
	return prune(fields)
}

// sorted brings lists into one order that mean the same in any.
func sorted(pod corev1.PodSpec) corev1.PodSpec {
	pod.Containers = slices.Clone(pod.Containers)
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.Env = slices.Clone(c.Env)
		slices.SortStableFunc(c.Env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	}
	return pod
}

// benignPod and benignContainer are fields of pods and containers that workers do
// not tell each other, beside labels and annotations.
var (
	benignPod = []string{
		"affinity", "imagePullSecrets", "nodeSelector", "preemptionPolicy", "priority", "priorityClassName",
		"terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
	}
	benignContainer = []string{"imagePullPolicy", "livenessProbe", "readinessProbe", "startupProbe"}
	benignResources = []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage)}
)

// prune leaves out what is benign.
func prune(fields map[string]any) map[string]any {
	template, _ := fields["podTemplate"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)
	if pod == nil {
		return fields
	}
	pod = without(pod, benignPod)
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := pod[list].([]any)
		var kept []any
		for _, item := range containers {
			container, _ := item.(map[string]any)
			kept = append(kept, pruneContainer(container))
		}
		if kept != nil {
			pod[list] = kept
		}
	}
	template = maps.Clone(template)
	template["spec"] = pod
	fields["podTemplate"] = template
	return fields
}

func pruneContainer(container map[string]any) map[string]any {
	container = without(container, benignContainer)
	resources, _ := container["resources"].(map[string]any)
	resources = maps.Clone(resources)
	for _, list := range []string{"requests", "limits"} {
		if of, ok := resources[list].(map[string]any); ok {
			if of = without(of, benignResources); len(of) > 0 {
				resources[list] = of
			} else {
				delete(resources, list)
			}
		}
	}
	if len(resources) > 0 {
		container["resources"] = resources
	} else {
		delete(container, "resources")
	}
	return container
}

func without(fields map[string]any, keys []string) map[string]any {
	fields = maps.Clone(fields)
	for _, key := range keys {
		delete(fields, key)
	}
	return fields
}

// differing are the paths at which two trees differ. Lists are compared as a whole,
// except those of containers.
func differing(at string, was, is any) []string {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	before, isMap := was.(map[string]any)
	after, alsoMap := is.(map[string]any)
	if !isMap || !alsoMap {
		old, isList := was.([]any)
		desired, alsoList := is.([]any)
		if isList && alsoList && len(old) == len(desired) {
			var all []string
			for i := range old {
				all = append(all, differing(at+"["+name(desired[i])+"]", old[i], desired[i])...)
			}
			return all
		}
		return []string{at}
	}
	var all []string
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		path := key
		if at != "" {
			path = at + "." + key
		}
		all = append(all, differing(path, before[key], after[key])...)
	}
	return all
}

// name is that of an element of a list; empty for one that has none.
func name(element any) string {
	fields, _ := element.(map[string]any)
	named, _ := fields["name"].(string)
	return named
}
