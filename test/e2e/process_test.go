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
	return findProcess(t, "the engine of "+pod.Name, func(_, environ string) bool {
		return strings.Contains(environ, "\x00POD_UID="+string(pod.UID)+"\x00")
	})
}

// controlPlane finds a process of this test's own cluster.
func controlPlane(t *testing.T, program string) int {
	t.Helper()
	dir := filepath.Dir(shared.Kubeconfig)
	return findProcess(t, program, func(commandLine, _ string) bool {
		return filepath.Base(firstOf(commandLine)) == program && strings.Contains(commandLine, dir)
	})
}

func firstOf(commandLine string) string {
	first, _, _ := strings.Cut(commandLine, "\x00")
	return first
}

// findProcess looks through our own processes; others cannot be read.
func findProcess(t *testing.T, what string, matches func(commandLine, environ string) bool) int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
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
			return pid
		}
	}
	t.Fatalf("no process is %s", what)
	return 0
}
