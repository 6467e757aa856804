package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/logfile"
)

// Bounds of a termination message, as a kubelet has them.
const (
	longestMessage = 4096
	fallbackLines  = 80
	fallbackBytes  = 2048
)

func logPath(podDir, container string, number int32) string {
	return filepath.Join(podDir, "containers", container, fmt.Sprintf("%d.log", number))
}

func closeLog(log *logfile.File, l *launch) {
	if err := log.Close(); err != nil {
		klog.ErrorS(err, "Close a log", "path", l.logPath)
	}
}

// lastWords is the termination message of a run.
func lastWords(l *launch, code int) string {
	if data, err := os.ReadFile(l.lastWordsPath); err == nil && len(data) > 0 {
		return strings.ToValidUTF8(string(data[:min(len(data), longestMessage)]), "")
	}
	if code == 0 || l.spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	text, err := logfile.Tail(l.logPath, fallbackLines, fallbackBytes)
	if err != nil {
		return fmt.Sprintf("the log cannot be read: %v", err)
	}
	return strings.ToValidUTF8(text, "")
}

// Log is the file with what a container printed in its present or, if it waits
// for its next, last run; or in the run before. running tells whether more may
// come.
func (w *Worker) Log(container string, previous bool) (path string, running func() bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cs, ok := w.containers[container]
	if !ok {
		for _, list := range [][]corev1.Container{w.pod.Spec.InitContainers, w.pod.Spec.Containers} {
			for _, c := range list {
				if c.Name == container {
					return "", nil, fmt.Errorf("container %q in pod %q is waiting to start: ContainerCreating", container, w.pod.Name)
				}
			}
		}
		return "", nil, fmt.Errorf("container %s is not valid for pod %s", container, w.pod.Name)
	}
	number, waits := cs.RestartCount, cs.State.Waiting != nil
	switch {
	case previous && cs.LastTerminationState.Terminated == nil:
		return "", nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, w.pod.Name)
	case previous && !waits:
		number--
	case waits && cs.LastTerminationState.Terminated == nil:
		return "", nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, w.pod.Name, cs.State.Waiting.Reason)
	}
	running = func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		now := w.containers[container]
		return now.State.Running != nil && now.RestartCount == number
	}
	return logPath(w.dir, container, number), running, nil
}
