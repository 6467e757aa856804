package e2e

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
)

// kill ends a process the hard way, as a crash would.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := process.Kill(pid); err != nil {
		t.Fatal(err)
	}
}

// engineOf finds the process that plays a pod's main container.
func engineOf(t *testing.T, pod corev1.Pod) int {
	t.Helper()
	pid, err := process.InPod(pod.UID)
	if err != nil {
		t.Fatalf("%s: %v", pod.Name, err)
	}
	return pid
}

// controlPlane finds a process of the cluster that most tests share.
func controlPlane(t *testing.T, program string) int {
	t.Helper()
	return processesOf(t, shared, program)[0]
}

// processesOf finds the processes of a cluster that run a program.
func processesOf(t *testing.T, c *localenv.Cluster, program string) []int {
	t.Helper()
	pids, err := process.Of(filepath.Dir(c.Kubeconfig), program)
	if err != nil {
		t.Fatal(err)
	}
	return pids
}
