package worker

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Faults that a pod can ask for by annotation. They hit the container main or,
// if there is none, the first one.
const (
	FaultImagePull  = "localcluster.dynamo/image-pull-error"
	FaultCrashAfter = "localcluster.dynamo/crash-after"
	FaultExitCode   = "localcluster.dynamo/exit-code"
	FaultNeverReady = "localcluster.dynamo/never-ready"
	FaultSlowStart  = "localcluster.dynamo/slow-start"
	FaultOOMAfter   = "localcluster.dynamo/oom-after"
	FaultStart      = "localcluster.dynamo/start-error"
	// FaultEvict hits the whole pod: the node runs out of what it names.
	FaultEvict = "localcluster.dynamo/evict"
)

// Values of FaultImagePull.
const (
	pullNotFound = "true"
	pullRefused  = "unauthorized"
)

// faults is what should go wrong with one container.
type faults struct {
	imagePull  string // what the registry answers; empty if it has the image
	neverReady bool
	start      string // why the program cannot be started
	slowStart  time.Duration
	end        *forcedEnd
}

// forcedEnd is a process killed from outside.
type forcedEnd struct {
	after  time.Duration
	code   int
	reason string
}

// faultsOf reads the annotations; bad lists those that make no sense.
func faultsOf(pod *corev1.Pod, container string) (f faults, bad []string) {
	if container != victim(pod) {
		return faults{}, nil
	}
	duration := func(key string) (time.Duration, bool) {
		text, ok := pod.Annotations[key]
		if !ok {
			return 0, false
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			bad = append(bad, key)
			return 0, false
		}
		return d, true
	}
	switch value := pod.Annotations[FaultImagePull]; value {
	case pullNotFound, pullRefused:
		f.imagePull = value
	case "", "false":
	default:
		bad = append(bad, FaultImagePull)
	}
	f.start = pod.Annotations[FaultStart]
	f.neverReady = pod.Annotations[FaultNeverReady] == "true"
	f.slowStart, _ = duration(FaultSlowStart)
	if d, ok := duration(FaultCrashAfter); ok {
		f.end = &forcedEnd{after: d, code: 137}
		if text, ok := pod.Annotations[FaultExitCode]; ok {
			code, err := strconv.ParseUint(text, 10, 8)
			if err != nil {
				bad = append(bad, FaultExitCode)
			} else {
				f.end.code = int(code)
			}
		}
	}
	if d, ok := duration(FaultOOMAfter); ok {
		f.end = &forcedEnd{after: d, code: 137, reason: "OOMKilled"}
	}
	return f, bad
}

func victim(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == "main" {
			return c.Name
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}
