package diagnosis

import "slices"

// Reason names a cause in one word.
type Reason string

// The reasons, in the order in which a pod can meet them: it is made, placed,
// given its volumes, its images, and then runs. What comes first hides what
// comes later.
const (
	// Making the pod.
	ServiceAccountNotFound Reason = "ServiceAccountNotFound"
	QuotaExceeded          Reason = "QuotaExceeded"
	LimitRangeViolated     Reason = "LimitRangeViolated"
	PodSecurityViolated    Reason = "PodSecurityViolated"
	PodRefused             Reason = "PodRefused"

	// Losing the pod.
	Preempted Reason = "Preempted"
	NodeLost  Reason = "NodeLost"

	// Placing the pod.
	ClaimNotFound        Reason = "ClaimNotFound"
	StorageClassNotFound Reason = "StorageClassNotFound"
	ClaimNotBound        Reason = "ClaimNotBound"
	GangIncomplete       Reason = "GangIncomplete"
	Unschedulable        Reason = "Unschedulable"

	// Giving it what it needs.
	SecretNotFound    Reason = "SecretNotFound"
	ConfigMapNotFound Reason = "ConfigMapNotFound"
	VolumeMountFailed Reason = "VolumeMountFailed"
	ConfigInvalid     Reason = "ConfigInvalid"
	InvalidImageName  Reason = "InvalidImageName"
	ImageNotFound     Reason = "ImageNotFound"
	ImagePullDenied   Reason = "ImagePullDenied"
	ImagePullFailed   Reason = "ImagePullFailed"

	// Running it.
	ContainerNotStarted  Reason = "ContainerNotStarted"
	InitContainerFailed  Reason = "InitContainerFailed"
	OutOfMemory          Reason = "OutOfMemory"
	StartupProbeFailed   Reason = "StartupProbeFailed"
	LivenessProbeFailed  Reason = "LivenessProbeFailed"
	ContainerCrashed     Reason = "ContainerCrashed"
	ReadinessProbeFailed Reason = "ReadinessProbeFailed"

	// A pod that is lost for good while its successor starts.
	Evicted     Reason = "Evicted"
	NodeRefused Reason = "NodeRefused"

	// Starting is no fault: time will do.
	Starting Reason = "Starting"
)

// advice says for each reason what a person can do about it. The order is that
// of the reasons.
var advice = []struct {
	reason Reason
	todo   string
}{
	{ServiceAccountNotFound, "create the ServiceAccount, or name another in extraPodSpec.serviceAccountName"},
	{QuotaExceeded, "ask for less, free what the namespace uses, or have its ResourceQuota raised"},
	{LimitRangeViolated, "bring the service's resources within the namespace's LimitRange"},
	{PodSecurityViolated, "set the securityContext that the namespace's Pod Security level asks for, or label the namespace otherwise"},
	{PodRefused, "read what the API server says; an admission policy or an invalid field keeps the pod from being made"},
	{Preempted, "give the service a higher priorityClassName, or more capacity to the cluster"},
	{NodeLost, "look at the node; pods move by themselves some minutes after it is gone"},
	{ClaimNotFound, "create the PersistentVolumeClaim, or let the graph do it with spec.pvcs[].create"},
	{StorageClassNotFound, "create the StorageClass, or name one that kubectl get storageclass lists"},
	{ClaimNotBound, "look at kubectl describe pvc; a claim needs a StorageClass that makes volumes, or a volume that fits"},
	{GangIncomplete, "free or add nodes: all pods of a group are needed at once"},
	{Unschedulable, "free or add what the message names, or ask for less"},
	{SecretNotFound, "create the Secret in the graph's namespace"},
	{ConfigMapNotFound, "create the ConfigMap in the graph's namespace"},
	{VolumeMountFailed, "mend what the volume refers to"},
	{ConfigInvalid, "mend what the message names in the service's container"},
	{InvalidImageName, "mend the image's name in the service's container"},
	{ImageNotFound, "check the image's name and tag, and that it was pushed"},
	{ImagePullDenied, "give the namespace a pull secret for this registry; graphs find it by themselves"},
	{ImagePullFailed, "check that the nodes reach the registry"},
	{ContainerNotStarted, "check the container's command: the node could not start it"},
	{InitContainerFailed, "read the init container's log: kubectl logs POD -c CONTAINER --previous"},
	{OutOfMemory, "raise the service's memory limit, or make the engine use less"},
	{StartupProbeFailed, "give the engine longer (startupProbe.failureThreshold), or find out why it does not answer"},
	{LivenessProbeFailed, "find out why the engine stops answering; an engine that needs long to start wants a startupProbe"},
	{ContainerCrashed, "read the container's log: kubectl logs POD -c CONTAINER --previous"},
	{ReadinessProbeFailed, "see what the container waits for: kubectl logs POD -c CONTAINER"},
	{Evicted, "give the pod requests that match what it uses, or the node more room"},
	{NodeRefused, "look at the node: it lacks what the scheduler believes it has"},
	{Starting, "wait"},
}

// Reasons are all there are, in their order.
func Reasons() []Reason {
	var all []Reason
	for _, a := range advice {
		all = append(all, a.reason)
	}
	return all
}

// Advice says what a person can do.
func (r Reason) Advice() string {
	if i := r.rank(); i < len(advice) {
		return advice[i].todo
	}
	return ""
}

// Fault reports whether somebody has to act.
func (r Reason) Fault() bool { return r != Starting }

// rank is the place of a reason in the order; unknown ones are last.
func (r Reason) rank() int {
	i := slices.IndexFunc(advice, func(a struct {
		reason Reason
		todo   string
	}) bool {
		return a.reason == r
	})
	if i < 0 {
		return len(advice)
	}
	return i
}
