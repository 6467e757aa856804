package diagnosis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Exit codes of a process that was told to end.
const (
	exitKill = 137
	exitTerm = 143
)

// ended reads why a run of a container ended.
func (c container) ended(end *corev1.ContainerStateTerminated) Cause {
	switch end.Reason {
	case "OOMKilled":
		return Cause{Reason: OutOfMemory, Message: c.noun() + " was killed for lack of memory" + c.memory()}
	case "StartError", "ContainerCannotRun":
		return Cause{Reason: ContainerNotStarted, Message: clip(fmt.Sprintf("%s cannot be started: %s", c.noun(), startError(end.Message)))}
	}
	if end.ExitCode == 0 || end.ExitCode == exitKill || end.ExitCode == exitTerm {
		switch {
		case c.complained("Startup"):
			return Cause{Reason: StartupProbeFailed, Message: fmt.Sprintf("%s was ended: its startup probe (%s) failed for too long", c.noun(), probe(c.spec.StartupProbe))}
		case c.complained("Liveness"):
			return Cause{Reason: LivenessProbeFailed, Message: fmt.Sprintf("%s was ended: its liveness probe (%s) failed", c.noun(), probe(c.spec.LivenessProbe))}
		}
	}
	reason := ContainerCrashed
	if c.init {
		reason = InitContainerFailed
	}
	how := fmt.Sprintf("%s exited with code %d", c.noun(), end.ExitCode)
	if end.ExitCode == 0 {
		how = c.noun() + " ended by itself, without an error, though it is meant to go on"
	}
	if line := c.lastLine(end); line != "" {
		how += ": " + line
	}
	return Cause{Reason: reason, Message: clip(how)}
}

// lastLine is what the container said in the end: to its node, or in its log.
func (c container) lastLine(end *corev1.ContainerStateTerminated) string {
	if line := LastLine(end.Message); line != "" {
		return line
	}
	return LastLine(c.e.LastLines[snapshot.ContainerKey{Pod: c.pod.UID, Container: c.Name}])
}

func (c container) memory() string {
	if q, limited := c.spec.Resources.Limits[corev1.ResourceMemory]; limited {
		return fmt.Sprintf(" (limit %s)", q.String())
	}
	return ""
}

// complained reports whether the node found a probe of the container failing.
func (c container) complained(kind string) bool {
	return slices.ContainsFunc(c.e.Complaints, func(s snapshot.Complaint) bool {
		return s.Pod == c.pod.UID && s.Container == c.Name && s.Reason == "Unhealthy" && strings.HasPrefix(s.Message, kind+" probe ")
	})
}

// unproved reads what a running container still has to show.
func (c container) unproved() Cause {
	started := c.Started == nil || *c.Started
	switch {
	case c.init:
		return Cause{Reason: Starting, Message: c.noun() + " is running"}
	case !started && c.spec.StartupProbe != nil:
		return Cause{Reason: Starting, Message: fmt.Sprintf("%s is starting: its startup probe (%s) has not succeeded yet", c.noun(), probe(c.spec.StartupProbe))}
	case c.spec.ReadinessProbe != nil && c.complained("Readiness"):
		return Cause{Reason: ReadinessProbeFailed, Message: fmt.Sprintf("%s runs, but its readiness probe (%s) fails", c.noun(), probe(c.spec.ReadinessProbe))}
	case c.spec.ReadinessProbe != nil:
		return Cause{Reason: Starting, Message: fmt.Sprintf("%s is starting: its readiness probe (%s) has not succeeded yet", c.noun(), probe(c.spec.ReadinessProbe))}
	default:
		return Cause{Reason: Starting, Message: c.noun() + " is starting"}
	}
}

// probe describes what a probe asks.
func probe(p *corev1.Probe) string {
	port := func(p intstr.IntOrString) string { return ":" + p.String() }
	switch {
	case p == nil:
		return "none"
	case p.HTTPGet != nil:
		return "GET " + port(p.HTTPGet.Port) + p.HTTPGet.Path
	case p.TCPSocket != nil:
		return "connect to " + port(p.TCPSocket.Port)
	case p.GRPC != nil:
		return fmt.Sprintf("gRPC :%d", p.GRPC.Port)
	case p.Exec != nil && len(p.Exec.Command) > 0:
		return "run " + p.Exec.Command[0]
	default:
		return "no handler"
	}
}

// ociTail is the part of a runtime's error that speaks of the container.
var ociTail = regexp.MustCompile(`(?:error during container init|starting container process caused|unable to start container process): (.+?)(?:: unknown)?$`)

// startError is what a container runtime says, without its own layers.
func startError(message string) string {
	message = strings.TrimSpace(message)
	for m := ociTail.FindStringSubmatch(message); m != nil; m = ociTail.FindStringSubmatch(message) {
		message = m[1]
	}
	return message
}
