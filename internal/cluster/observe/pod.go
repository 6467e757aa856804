package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/topologylabel"
)

// Warnings are found by what they are about, in the words of the API server, so
// that the same question can be put to it and to an informer.
const (
	involvedKind = "involvedObject.kind"
	involvedName = "involvedObject.name"
)

// serves indexes pods by the service that they run.
const serves = "metadata.service"

// longestWord bounds what is kept of any message about a pod.
const longestWord = 2048

// noisy are warnings that a pod's status tells better, and that are many.
var noisy = []string{"BackOff", "Failed", "FailedScheduling", "FailedToRetrieveImagePullSecret"}

// Warnings selects the events that are worth holding: what nodes and workloads
// say of pods and nowhere else.
func Warnings() fields.Selector {
	terms := []fields.Selector{fields.OneTermEqualSelector("type", corev1.EventTypeWarning)}
	for _, reason := range noisy {
		terms = append(terms, fields.OneTermNotEqualSelector("reason", reason))
	}
	return fields.AndSelectors(terms...)
}

// IndexPods prepares the informers' stores for an Inspector.
func IndexPods(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, serves, func(object client.Object) []string {
		graph, service := object.GetLabels()[v1alpha1.LabelGraphName], object.GetLabels()[v1alpha1.LabelComponent]
		return []string{serviceKey(graph, ""), serviceKey(graph, service)}
	})
	if err != nil {
		return fmt.Errorf("index pods by service: %w", err)
	}
	about := map[string]func(corev1.ObjectReference) string{
		involvedKind: func(r corev1.ObjectReference) string { return r.Kind },
		involvedName: func(r corev1.ObjectReference) string { return r.Name },
	}
	for field, value := range about {
		err := indexer.IndexField(ctx, &corev1.Event{}, field, func(object client.Object) []string {
			return []string{value(object.(*corev1.Event).InvolvedObject)}
		})
		if err != nil {
			return fmt.Errorf("index warnings by %s: %w", field, err)
		}
	}
	return nil
}

func serviceKey(graph, service string) string { return graph + "/" + service }

// TrimPod keeps of a pod what tells how it is, and nothing that changes while
// that stays the same: no other times, no counts, no pauses. Objects equal after
// trimming need no second look.
func TrimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, Annotations: only(pod.Annotations, keptAnnotations...), OwnerReferences: pod.OwnerReferences,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority, ReadinessGates: pod.Spec.ReadinessGates, Volumes: volumes(pod.Spec.Volumes),
			InitContainers: containers(pod.Spec.InitContainers), Containers: containers(pod.Spec.Containers),
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: short(pod.Status.Message), PodIP: pod.Status.PodIP, PodIPs: pod.Status.PodIPs,
			InitContainerStatuses: statuses(pod.Status.InitContainerStatuses),
			ContainerStatuses:     statuses(pod.Status.ContainerStatuses),
		},
	}
	for _, c := range pod.Status.Conditions {
		kept := corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: short(c.Message)}
		if c.Type == corev1.PodReady || c.Type == corev1.PodInitialized || c.Type == corev1.PodScheduled {
			// It moves with the condition alone, and tells how long a worker has been ready,
			// whether it ever was, and how long that took.
			kept.LastTransitionTime = c.LastTransitionTime
		}
		trimmed.Status.Conditions = append(trimmed.Status.Conditions, kept)
	}
	if trimmed.Size() > largestPod && !guard.Outlines.Off() {
		return identified(trimmed), nil
	}
	return trimmed, nil
}

// keptAnnotations of pods are what decisions are made by.
var keptAnnotations = append([]string{lwsv1.SizeAnnotationKey}, topologylabel.Annotations...)

// largestPod bounds what is held of a pod. Those of engines have a tenth of it.
const largestPod = 64 << 10

// identified is a pod that somebody made larger than any that runs an engine: that
// it is there is held, and no more.
func identified(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels:            only(pod.Labels, v1alpha1.LabelGraphName, v1alpha1.LabelComponent, v1alpha1.LabelBaseModelHash),
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP},
	}
}

func only(from map[string]string, keys ...string) map[string]string {
	kept := maps.Clone(from)
	maps.DeleteFunc(kept, func(key, _ string) bool { return !slices.Contains(keys, key) })
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// volumes keeps those that refer to other objects.
func volumes(all []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, v := range all {
		if v.Secret != nil || v.ConfigMap != nil || v.Projected != nil || v.PersistentVolumeClaim != nil {
			kept = append(kept, v)
		}
	}
	return kept
}

func containers(all []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, c := range all {
		kept = append(kept, corev1.Container{
			Name: c.Name, Image: c.Image, Ports: namedPorts(c.Ports), Resources: c.Resources, RestartPolicy: c.RestartPolicy,
			StartupProbe: c.StartupProbe, ReadinessProbe: c.ReadinessProbe, LivenessProbe: c.LivenessProbe,
		})
	}
	return kept
}

// namedPorts keeps the ports that are looked for by their name.
func namedPorts(all []corev1.ContainerPort) []corev1.ContainerPort {
	var kept []corev1.ContainerPort
	for _, p := range all {
		if p.Name != "" {
			kept = append(kept, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort})
		}
	}
	return kept
}

func statuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, s := range all {
		kept = append(kept, corev1.ContainerStatus{
			Name: s.Name, Ready: s.Ready, Started: s.Started,
			State: state(s.State), LastTerminationState: state(s.LastTerminationState),
		})
	}
	return kept
}

func state(s corev1.ContainerState) corev1.ContainerState {
	switch {
	case s.Waiting != nil:
		w := *s.Waiting
		if w.Message = short(w.Message); w.Reason == "CrashLoopBackOff" {
			w.Message = "" // how long the pause is
		}
		return corev1.ContainerState{Waiting: &w}
	case s.Running != nil:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	case s.Terminated != nil:
		t := s.Terminated
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: t.ExitCode, Signal: t.Signal, Reason: t.Reason, Message: end(t.Message), ContainerID: t.ContainerID,
		}}
	default:
		return corev1.ContainerState{}
	}
}

// short and end bound a message, at its beginning or at its end, where a log
// tells most.
func short(text string) string {
	if len(text) > longestWord {
		text = text[:longestWord]
	}
	return strings.ToValidUTF8(text, "")
}

func end(text string) string {
	if len(text) > longestWord {
		text = text[len(text)-longestWord:]
	}
	return strings.ToValidUTF8(text, "")
}

// warned are the kinds whose warnings are read.
var warned = []string{"Pod", "StatefulSet"}

// TrimWarning keeps of an event who is warned about what; of what is about other
// kinds, which no selector can leave out, not even that.
func TrimWarning(object any) (any, error) {
	e, ok := object.(*corev1.Event)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Event{
		TypeMeta:   e.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion},
	}
	if !slices.Contains(warned, e.InvolvedObject.Kind) {
		return trimmed, nil
	}
	trimmed.InvolvedObject = corev1.ObjectReference{
		Kind: e.InvolvedObject.Kind, Name: short(e.InvolvedObject.Name), UID: types.UID(short(string(e.InvolvedObject.UID))), FieldPath: short(e.InvolvedObject.FieldPath),
	}
	trimmed.Reason, trimmed.Message = short(e.Reason), short(e.Message)
	return trimmed, nil
}
