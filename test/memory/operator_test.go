package memory

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// operator is one beside the cluster, with an administrator's rights: what it may
// do is not what is measured.
type operator struct {
	*testing.T
	process *exec.Cmd
	began   time.Time
	ended   chan struct{}
	log     string
}

// launch runs a program as the operator of the whole cluster, and does not wait for
// it.
func launch(t *testing.T, program string, environment ...string) *operator {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "operator.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := &operator{T: t, began: time.Now(), ended: make(chan struct{}), log: log.Name()}
	o.process = exec.Command(program, "--metrics-bind-address", freeAddress(t), "--health-probe-bind-address", freeAddress(t))
	o.process.Env = append(os.Environ(), append(environment, "KUBECONFIG="+cluster.Kubeconfig)...)
	o.process.Stdout, o.process.Stderr = log, log
	if err := o.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = o.process.Wait() // it is stopped by a signal
		close(o.ended)
	}()
	t.Cleanup(func() {
		o.stop()
		if said, err := os.ReadFile(o.log); t.Failed() && err == nil {
			t.Logf("the operator said:\n%s", said[max(0, len(said)-1000):])
		}
	})
	return o
}

// stop ends the operator, which gives its Leases back: the next does not wait for
// them.
func (o *operator) stop() {
	_ = o.process.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-o.ended:
	case <-time.After(time.Minute):
		_ = o.process.Process.Kill()
		<-o.ended
	}
}

// peak is the largest resident size that the operator had, by the kernel's own
// account, in MiB.
func (o *operator) peak() int {
	o.Helper()
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", o.process.Process.Pid))
	if err != nil {
		o.Fatal(err)
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			var kib int
			if _, err := fmt.Sscan(text, &kib); err != nil {
				o.Fatal(err)
			}
			return kib >> 10
		}
	}
	o.Fatal("the kernel does not say how large the operator was")
	return 0
}

// unguarded builds the operator so that a guard can be left out of it.
func unguarded(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dynamo-operator")
	build := exec.Command("go", "build", "-tags", "unguarded", "-o", program, "../../cmd/dynamo-operator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build an operator without guards: %v\n%s", err, said)
	}
	return program
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
