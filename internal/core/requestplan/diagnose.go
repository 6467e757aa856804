package requestplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/joboverride"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// diagnose says why a Job failed: in the profiler's own words if it had any.
func diagnose(s Sight) Finding {
	condition, _ := conditionOf(s.Job, batchv1.JobFailed)
	if condition.Reason == batchv1.JobReasonDeadlineExceeded {
		return late(s)
	}
	for _, pod := range newest(s.Pods) {
		if f, found := fate(pod); found {
			return f
		}
	}
	// Who may write ConfigMaps may have written this one; it makes nothing.
	if r, err := profileoutput.ParseResult(s.Output[profileoutput.KeyResult]); err == nil && r.State == profileoutput.Failed && r.Reason.Known() {
		return failed(string(r.Reason), r.Message)
	}
	return failed(v1alpha1.ReasonProfilingFailed, cmp.Or(condition.Message, "the profiler failed and left no word"))
}

func failed(reason, message string) Finding {
	return Finding{Type: v1alpha1.ConditionProfiling, Reason: reason, Message: message}
}

// late says that the deadline has passed, and how far the profiler had come.
func late(s Sight) Finding {
	message := "the profiler did not finish in time"
	if given := s.Job.Spec.ActiveDeadlineSeconds; given != nil {
		message = fmt.Sprintf("the profiler did not finish within %s", time.Duration(*given)*time.Second)
	}
	if progress, err := profileoutput.ParseProgress(s.Output[profileoutput.KeyProgress]); err == nil {
		message += "; it got as far as " + progress.String()
	} else if why := waiting(s.Pods); why != "" {
		message += ": " + why
	}
	return failed(v1alpha1.ReasonProfilingTimedOut, message)
}

// newest brings the latest pods to the front.
func newest(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
}

// fate reads off a pod how it ended.
func fate(pod corev1.Pod) (Finding, bool) {
	if pod.Status.Reason == "Evicted" || pod.Status.Reason == "Preempting" {
		return failed(v1alpha1.ReasonProfilerEvicted, "the profiler's pod was evicted: "+pod.Status.Message), true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return failed(v1alpha1.ReasonProfilerEvicted, "the profiler's pod was evicted: "+cmp.Or(c.Message, c.Reason)), true
		}
	}
	// The profiler's own end tells more than that of the collector beside it,
	// which follows from it.
	for _, c := range slices.SortedStableFunc(slices.Values(pod.Status.ContainerStatuses), func(a, b corev1.ContainerStatus) int {
		return cmp.Compare(rank(a), rank(b))
	}) {
		end := c.State.Terminated
		if end == nil || end.ExitCode == 0 {
			continue
		}
		if end.Reason == "OOMKilled" {
			return failed(v1alpha1.ReasonProfilerOOM, "the profiler was killed for want of memory; give it more in spec.profilingConfig.resources"), true
		}
		if r, err := profileoutput.ParseResult(end.Message); err == nil && r.State == profileoutput.Failed && r.Reason.Known() {
			return failed(string(r.Reason), r.Message), true
		}
		message := fmt.Sprintf("container %s ended with exit code %d", c.Name, end.ExitCode)
		if words := lastWords(end.Message); words != "" {
			message += ": " + words
		}
		return failed(v1alpha1.ReasonProfilerCrashed, message), true
	}
	return Finding{}, false
}

// Names of the containers that profile.
const (
	ProfilerContainer  = joboverride.Profiler
	CollectorContainer = joboverride.Collector
)

func rank(c corev1.ContainerStatus) int {
	if c.Name == ProfilerContainer {
		return 0
	}
	return 1
}

// longestWords bounds what of a log is put into a condition.
const longestWords = 600

// lastWords are the end of what a container said, where the reason usually is.
func lastWords(text string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' })
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	words := strings.Join(lines, " | ")
	if len(words) > longestWords {
		words = "..." + strings.ToValidUTF8(words[len(words)-longestWords:], "")
	}
	return words
}

// waiting says what a pod that does not run waits for.
func waiting(pods []corev1.Pod) string {
	all := newest(pods)
	if len(all) == 0 || all[0].Status.Phase != corev1.PodPending {
		return ""
	}
	for _, c := range all[0].Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return "the profiler's pod is not placed: " + c.Message
		}
	}
	for _, c := range all[0].Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Message != "" {
			return fmt.Sprintf("container %s waits: %s: %s", c.Name, w.Reason, w.Message)
		}
	}
	return ""
}
