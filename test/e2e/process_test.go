package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/playground"
)

// kill ends a process the hard way, as a crash would.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// engineOf finds the process that plays a pod's main container.
func engineOf(t *testing.T, pod corev1.Pod) int {
	t.Helper()
	return findProcesses(t, "the engine of "+pod.Name, func(_, environ string) bool {
		return strings.Contains(environ, "\x00POD_UID="+string(pod.UID)+"\x00")
	})[0]
}

// controlPlane finds a process of the cluster that most tests share.
func controlPlane(t *testing.T, program string) int {
	t.Helper()
	return processesOf(t, shared, program)[0]
}

// processesOf finds the processes of a cluster that run a program. Other
// clusters of this machine have the same ones.
func processesOf(t *testing.T, c *playground.Cluster, program string) []int {
	t.Helper()
	dir := filepath.Dir(c.Kubeconfig)
	return findProcesses(t, program, func(commandLine, _ string) bool {
		return filepath.Base(firstOf(commandLine)) == program && strings.Contains(commandLine, dir)
	})
}

func firstOf(commandLine string) string {
	first, _, _ := strings.Cut(commandLine, "\x00")
	return first
}

// findProcesses looks through our own processes; others cannot be read. There
// is at least one, or the test ends.
func findProcesses(t *testing.T, what string, matches func(commandLine, environ string) bool) []int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, folder := range folders {
		commandLine, err := os.ReadFile(folder + "/cmdline")
		if err != nil || len(commandLine) == 0 {
			continue // ended meanwhile, or a kernel thread
		}
		environ, err := os.ReadFile(folder + "/environ")
		if err != nil {
			continue
		}
		if matches(string(commandLine), string(bytes.Join([][]byte{nil, environ}, []byte{0}))) {
			pid, err := strconv.Atoi(filepath.Base(folder))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no process is %s", what)
	}
	return found
}
