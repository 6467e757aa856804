package observe

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Bounds of what is read of a log, and of how much is remembered.
const (
	logLines    = int64(20)
	logBytes    = int64(16 << 10)
	logPatience = 3 * time.Second
	logMemory   = 1024
)

// Logs reads the last line that a container printed before it ended, once for
// each end.
type Logs struct {
	pods typedcorev1.PodsGetter

	mu    sync.Mutex
	known map[string]string // by the container's id
}

// NewLogs reads logs through the API server.
func NewLogs(pods typedcorev1.PodsGetter) *Logs {
	return &Logs{pods: pods, known: map[string]string{}}
}

// lastLines reads the log of the first container that crashed without a word to
// its node. One is enough: only a first cause is told.
func (l *Logs) lastLines(ctx context.Context, pods []corev1.Pod) map[snapshot.ContainerKey]string {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || ready(pod) {
			continue
		}
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, s := range list {
				end, previous := s.State.Terminated, false
				if end == nil {
					end, previous = s.LastTerminationState.Terminated, true
				}
				if s.Ready || end == nil || end.ExitCode == 0 || end.Message != "" || end.Reason == "OOMKilled" {
					continue
				}
				return map[snapshot.ContainerKey]string{{Pod: pod.UID, Container: s.Name}: l.lastLine(ctx, pod, s.Name, end.ContainerID, previous)}
			}
		}
	}
	return nil
}

// lastLine is empty where the log cannot be read: the exit code is told anyway.
func (l *Logs) lastLine(ctx context.Context, pod corev1.Pod, container, id string, previous bool) string {
	l.mu.Lock()
	line, known := l.known[id]
	l.mu.Unlock()
	if known {
		return line
	}
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	text, err := l.pods.Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: new(logLines), LimitBytes: new(logBytes),
	}).DoRaw(ctx)
	if err == nil {
		line = diagnosis.LastLine(string(text))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= logMemory {
		clear(l.known)
	}
	l.known[id] = line
	return line
}
