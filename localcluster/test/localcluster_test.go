// Package test runs the built binary as a user would. It needs LOCALCLUSTER_BIN to name it, and skips without.
package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const envBinary = "LOCALCLUSTER_BIN"

// nobody is who clusters run as when the tests run as root: nothing may depend on privileges.
const nobody = 65534

// localCluster is one cluster directory and the binary to manage it with.
type localCluster struct {
	dir string
}

// state is cluster.json, as documented for users.
type state struct {
	APIServer     string `json:"apiServer"`
	ProxyURL      string `json:"proxyURL"`
	Subnet        int    `json:"subnet"`
	SupervisorPID int    `json:"supervisorPID"`
}

// component is an entry of components.json.
type component struct {
	Name     string `json:"name"`
	PID      int    `json:"pid"`
	Restarts int    `json:"restarts"`
}

// newCluster returns a directory of its own for a cluster that is stopped when the test ends.
func newCluster(t *testing.T, elements ...string) *localCluster {
	t.Helper()
	c := &localCluster{dir: filepath.Join(append([]string{newFolder(t)}, elements...)...)}
	t.Cleanup(func() {
		if out, err := c.run("down", "--delete"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	return c
}

// newFolder returns one that the user who runs clusters may write to. A test's own TempDir lies in a private one.
func newFolder(t testing.TB) string {
	t.Helper()
	skipWithoutBinary(t)
	folder, err := os.MkdirTemp("", "localcluster-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	giveAway(t, folder)
	return folder
}

func skipWithoutBinary(t testing.TB) {
	t.Helper()
	if os.Getenv(envBinary) == "" {
		t.Skipf("%s does not name a localcluster binary", envBinary)
	}
}

func giveAway(t testing.TB, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
}

// run executes the binary with --dir and returns what it printed.
func (c *localCluster) run(verb string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute) // longer than it waits itself
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv(envBinary), append([]string{verb, "--dir=" + c.dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(c.dir)}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (c *localCluster) must(t testing.TB, verb string, args ...string) string {
	t.Helper()
	out, err := c.run(verb, args...)
	if err != nil {
		t.Fatalf("localcluster %s %s: %v\n%s", verb, strings.Join(args, " "), err, out)
	}
	return out
}

func (c *localCluster) up(t testing.TB, args ...string) *localCluster {
	t.Helper()
	t.Log(c.must(t, "up", append([]string{"--detach"}, args...)...))
	return c
}

func (c *localCluster) state(t testing.TB) (s state) {
	t.Helper()
	c.read(t, "cluster.json", &s)
	return s
}

func (c *localCluster) component(t testing.TB, name string) component {
	t.Helper()
	for _, found := range c.components(t) {
		if found.Name == name {
			return found
		}
	}
	t.Fatalf("no component %s", name)
	return component{}
}

// kill ends a component once it runs, and returns what was recorded of it before.
func (c *localCluster) kill(t testing.TB, name string) (before component) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if before = c.component(t, name); before.PID == 0 {
			return fmt.Errorf("%s does not run", name)
		}
		return syscall.Kill(before.PID, syscall.SIGKILL)
	})
	return before
}

func (c *localCluster) components(t testing.TB) (all []component) {
	t.Helper()
	c.read(t, "components.json", &all)
	return all
}

func (c *localCluster) read(t testing.TB, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func (c *localCluster) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// shared is the cluster of all tests that leave it as they found it.
var shared = struct {
	sync.Once
	*localCluster
}{}

func sharedCluster(t testing.TB) *localCluster {
	t.Helper()
	skipWithoutBinary(t)
	shared.Do(func() {
		base, err := os.MkdirTemp("", "localcluster-test-")
		if err != nil {
			t.Fatal(err)
		}
		giveAway(t, base)
		shared.localCluster = &localCluster{dir: filepath.Join(base, "shared")}
		shared.up(t, "--nodes=4", "--audit-log")
	})
	return shared.localCluster
}

func TestMain(m *testing.M) {
	status := m.Run()
	if shared.localCluster != nil {
		if out, err := shared.run("down", "--delete"); err != nil {
			fmt.Fprintf(os.Stderr, "down: %v\n%s", err, out)
			status = 1
		}
		os.Remove(filepath.Dir(shared.dir))
	}
	os.Exit(status)
}

// eventually waits for a condition and fails with its last complaint.
func eventually(t testing.TB, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// alive looks at the state too: where nobody adopts orphans, a dead one stays as a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(fields, "Z")
}
