package diagnosis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// container is one of a pod's, as it was asked for and as it is.
type container struct {
	corev1.ContainerStatus
	spec corev1.Container
	init bool
	pod  corev1.Pod
	e    snapshot.Evidence
}

func (c container) noun() string {
	if c.init {
		return "init container " + c.Name
	}
	return "container " + c.Name
}

// unready reads why a pod that has a node does not serve.
func unready(pod corev1.Pod, e snapshot.Evidence) (Cause, bool) {
	var first *Cause
	for _, c := range containers(pod, e) {
		found, is := c.cause()
		if !is {
			continue
		}
		found.Container = c.Name
		if first == nil || found.Reason.rank() < first.Reason.rank() {
			first = &found
		}
	}
	if first != nil && first.Reason.Fault() {
		return *first, true
	}
	if c, found := unmounted(pod, e); found && !begun(pod) {
		return c, true
	}
	if first != nil {
		return *first, true
	}
	if !begun(pod) {
		return Cause{Reason: Starting, Message: "its containers are being created"}, true
	}
	return Cause{}, false
}

// containers pairs specs and statuses, in the order in which they start. A
// container without a status was not looked at by its node yet.
func containers(pod corev1.Pod, e snapshot.Evidence) []container {
	var all []container
	pair := func(specs []corev1.Container, statuses []corev1.ContainerStatus, init bool) {
		for _, spec := range specs {
			i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == spec.Name })
			if i >= 0 {
				all = append(all, container{ContainerStatus: statuses[i], spec: spec, init: init, pod: pod, e: e})
			}
		}
	}
	pair(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	pair(pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	return all
}

// begun reports whether a container of the pod ever ran.
func begun(pod corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	})
}

// cause reads what is wrong with a container; nothing is if it is done or ready.
func (c container) cause() (Cause, bool) {
	if w := c.State.Waiting; w != nil {
		if found, is := c.waiting(w.Reason, w.Message); is {
			return found, true
		}
	}
	end := c.State.Terminated
	if end == nil {
		end = c.LastTerminationState.Terminated
	}
	switch {
	case c.Ready || (c.init && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0):
		return Cause{}, false
	case end != nil && !(c.init && end.ExitCode == 0):
		// Between two runs, or in a run that has not proved better than the last.
		return c.ended(end), true
	case c.State.Running != nil:
		return c.unproved(), true
	default:
		return Cause{}, false
	}
}

// waiting reads why a container does not run; a container that waits for its
// turn says nothing.
func (c container) waiting(reason, message string) (Cause, bool) {
	switch reason {
	case "InvalidImageName":
		return Cause{Reason: InvalidImageName, Message: clip(fmt.Sprintf("image name %q is not valid: %s", c.spec.Image, lastClause(message)))}, true
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return c.unpulled(message), true
	case "CreateContainerConfigError":
		return c.misconfigured(message), true
	case "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return Cause{Reason: ContainerNotStarted, Message: clip(fmt.Sprintf("%s cannot be started: %s", c.noun(), startError(message)))}, true
	default:
		return Cause{}, false
	}
}

var (
	denied = regexp.MustCompile(`(?i)pull access denied|unauthori[sz]ed|authorization failed|authentication required|no basic auth|\b401\b|\b403\b|forbidden`)
	absent = regexp.MustCompile(`(?i)code = NotFound|: not found|manifest unknown|name unknown|\b404\b`)
)

// unpulled reads why an image is not there. A pull that failed and the pause
// after it are one state of affairs.
func (c container) unpulled(message string) Cause {
	image := c.spec.Image
	switch {
	case denied.MatchString(message):
		return Cause{Reason: ImagePullDenied, Message: clip(fmt.Sprintf("the registry does not give image %s to this namespace", image))}
	case absent.MatchString(message):
		return Cause{Reason: ImageNotFound, Message: clip(fmt.Sprintf("image %s does not exist in its registry", image))}
	case strings.Contains(message, "pull policy of Never"):
		return Cause{Reason: ImagePullFailed, Message: clip(fmt.Sprintf("image %s is not on node %s, and its pull policy is Never", image, c.pod.Spec.NodeName))}
	default:
		return Cause{Reason: ImagePullFailed, Message: clip(fmt.Sprintf("image %s cannot be pulled: %s", image, lastClause(message)))}
	}
}

var (
	noObject = regexp.MustCompile(`(?i)\b(secret|configmap)s? "([^"]+)" not found`)
	noKey    = regexp.MustCompile(`couldn't find key (\S+) in (Secret|ConfigMap) [^/\s]+/(\S+)`)
)

// misconfigured reads what a container's environment refers to in vain.
func (c container) misconfigured(message string) Cause {
	if m := noObject.FindStringSubmatch(message); m != nil {
		kind := "Secret"
		if strings.EqualFold(m[1], "configmap") {
			kind = "ConfigMap"
		}
		return missing(graph.Ref{Kind: kind, Name: m[2]})
	}
	if m := noKey.FindStringSubmatch(message); m != nil {
		return Cause{Reason: ConfigInvalid, Message: clip(fmt.Sprintf("%s has no key %s, which %s refers to", m[2]+" "+m[3], m[1], c.noun()))}
	}
	// What a kubelet adds in brackets names the pod.
	plain, _, _ := strings.Cut(message, " (pod: ")
	return Cause{Reason: ConfigInvalid, Message: clip(fmt.Sprintf("%s cannot be made: %s", c.noun(), plain))}
}

func missing(ref graph.Ref) Cause {
	reason := SecretNotFound
	if ref.Kind == "ConfigMap" {
		reason = ConfigMapNotFound
	}
	return Cause{Reason: reason, Message: fmt.Sprintf("%s %s does not exist", ref.Kind, ref.Name)}
}

var failedMount = regexp.MustCompile(`^Mount\S+ failed for volume "([^"]+)" : (.+)`)

// unmounted reads what a pod's volumes refer to in vain.
func unmounted(pod corev1.Pod, e snapshot.Evidence) (Cause, bool) {
	for _, ref := range References(pod) {
		if slices.Contains(e.Absent, ref) {
			return missing(ref), true
		}
	}
	for _, c := range e.Complaints {
		if c.Pod != pod.UID || c.Reason != "FailedMount" {
			continue
		}
		// A line a volume; waiting for them all is another complaint, which says
		// nothing of its own.
		for line := range strings.Lines(c.Message) {
			if m := failedMount.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				return Cause{Reason: VolumeMountFailed, Message: clip(fmt.Sprintf("volume %s cannot be mounted: %s", m[1], m[2]))}, true
			}
		}
	}
	return Cause{}, false
}

// References are the Secrets and ConfigMaps that a pod's volumes cannot do
// without.
func References(pod corev1.Pod) []graph.Ref {
	var refs []graph.Ref
	add := func(kind, name string, optional *bool) {
		if ref := (graph.Ref{Kind: kind, Name: name}); (optional == nil || !*optional) && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			add("Secret", v.Secret.SecretName, v.Secret.Optional)
		}
		if v.ConfigMap != nil {
			add("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Optional)
		}
		for _, s := range ptr.Deref(v.Projected, corev1.ProjectedVolumeSource{}).Sources {
			if s.Secret != nil {
				add("Secret", s.Secret.Name, s.Secret.Optional)
			}
			if s.ConfigMap != nil {
				add("ConfigMap", s.ConfigMap.Name, s.ConfigMap.Optional)
			}
		}
	}
	return refs
}
