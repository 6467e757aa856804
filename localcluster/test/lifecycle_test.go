package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTwoClustersRunSideBySide(t *testing.T) {
	first, second := sharedCluster(t), newCluster(t, "second").up(t, "--nodes=1", "--gpus-per-node=2")
	a, b := first.state(t), second.state(t)
	if a.Subnet == b.Subnet || a.APIServer == b.APIServer || a.ProxyURL == b.ProxyURL {
		t.Errorf("clusters share an address: %+v, %+v", a, b)
	}
	for c, want := range map[*localCluster]int{first: 4, second: 1} {
		nodes, err := c.client(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) != want {
			t.Errorf("%s has %d nodes, want %d", c.dir, len(nodes.Items), want)
		}
	}
}

func TestDataSurvivesDownAndUp(t *testing.T) {
	c := newCluster(t, "c").up(t, "--nodes=1")
	before := c.state(t)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"a": "b"}}
	if _, err := c.client(t).CoreV1().ConfigMaps("default").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pids := c.components(t)
	c.must(t, "down")
	for _, p := range pids {
		if alive(p.PID) {
			t.Errorf("%s (%d) outlives down", p.Name, p.PID)
		}
	}
	if out, err := c.run("status"); err == nil {
		t.Errorf("status of a stopped cluster succeeds:\n%s", out)
	}

	c.up(t)
	after := c.state(t)
	if before.Subnet != after.Subnet || before.APIServer != after.APIServer {
		t.Errorf("addresses changed: %+v, %+v", before, after)
	}
	if _, err := c.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestADeepDirectoryWorks(t *testing.T) {
	c := newCluster(t, strings.Split(strings.Repeat("folder/", 20)+"c", "/")...)
	c.up(t, "--nodes=1")
	c.must(t, "status")
}

func TestUpOnARunningClusterReusesIt(t *testing.T) {
	c := sharedCluster(t)
	pid := c.state(t).SupervisorPID
	c.must(t, "up", "--detach")
	c.must(t, "up") // in the foreground it must return as well
	if got := c.state(t).SupervisorPID; got != pid {
		t.Errorf("supervisor %d was replaced by %d", pid, got)
	}
	if out, err := c.run("up", "--detach", "--nodes=9"); err == nil || !strings.Contains(out, "--nodes=9") {
		t.Errorf("up with other nodes: %v\n%s", err, out)
	}
}

func TestTwoUpsAtOnceMakeOneCluster(t *testing.T) {
	c := newCluster(t, "c")
	results := make(chan error)
	for range 2 {
		go func() {
			out, err := c.run("up", "--detach", "--nodes=1")
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	c.must(t, "status")
}

func TestATakenDirectoryIsRefused(t *testing.T) {
	base := newFolder(t)
	c := &localCluster{dir: base}
	precious := filepath.Join(base, "thesis.tex")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"up"}, {"up", "--detach"}, {"down", "--delete"}} {
		if out, err := c.run(args[0], args[1:]...); err == nil || !strings.Contains(out, base) {
			t.Errorf("%v in a directory with other files: %v\n%s", args, err, out)
		}
	}
	entries, err := os.ReadDir(base)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory was touched: %v, %v", entries, err)
	}
}

func TestATakenSubnetIsRefused(t *testing.T) {
	taken := sharedCluster(t).state(t).Subnet
	c := newCluster(t, "c")
	out, err := c.run("up", "--detach", fmt.Sprintf("--subnet=%d", taken))
	if err == nil || !strings.Contains(out, fmt.Sprintf("127.%d.0.0/16", taken)) {
		t.Errorf("up on a taken subnet: %v\n%s", err, out)
	}
}

func TestKilledComponentsHeal(t *testing.T) {
	c := sharedCluster(t)
	for _, name := range []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "proxy", "node-agent"} {
		t.Run(name, func(t *testing.T) {
			before := c.kill(t, name)
			eventually(t, func(ctx context.Context) error {
				// What comes back before that which it needs may have to try again.
				if now := c.component(t, name); now.PID == 0 || now.Restarts <= before.Restarts {
					return fmt.Errorf("not restarted: %+v", now)
				}
				out, err := c.run("status")
				if err != nil {
					return fmt.Errorf("status: %w\n%s", err, out)
				}
				_, err = c.client(t).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
				return err
			})
		})
	}
}

func TestAKilledSupervisorLeavesNothingBehind(t *testing.T) {
	c := newCluster(t, "c").up(t, "--nodes=1")
	if err := syscall.Kill(c.state(t).SupervisorPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		for _, p := range c.components(t) {
			if alive(p.PID) {
				return fmt.Errorf("%s (%d) is an orphan", p.Name, p.PID)
			}
		}
		return nil
	})
	c.up(t)
	c.must(t, "status")
}
