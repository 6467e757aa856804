// Package node drives a whole local cluster: the built binary, real controllers
// and scheduler, and pods that really run. LOCALCLUSTER_BIN names the binary;
// without it everything here is skipped.
package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A node that is lost and a machine that is busy both take their time.
const patience = 5 * time.Minute

// one is the cluster that all tests share.
var one *cluster

type cluster struct {
	bin, dir string
	client   kubernetes.Interface
}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "dynamo-mocker" {
		play(os.Args[1:])
		return
	}
	os.Exit(withCluster(m))
}

func withCluster(m *testing.M) int {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "localcluster-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	one = &cluster{bin: bin, dir: filepath.Join(dir, "cluster")}
	// The programs that pods run: this very binary plays every runtime.
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "dynamo-mocker")); err != nil {
		panic(err)
	}
	if out, err := one.command("up", "--detach", "--nodes=3", "--gpus-per-node=8", "--bin-dir="+dir).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "start the cluster: %v\n%s", err, out)
		return 1
	}
	defer func() {
		if out, err := one.command("down").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "stop the cluster: %v\n%s", err, out)
		}
	}()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(one.dir, "kubeconfig"))
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	one.client = kubernetes.NewForConfigOrDie(config)
	return m.Run()
}

// command is a subcommand of the binary for our cluster.
func (c *cluster) command(verb string, args ...string) *exec.Cmd {
	return exec.Command(c.bin, append([]string{verb, "--dir=" + c.dir}, args...)...)
}

// scene is one test in a namespace of its own.
type scene struct {
	*testing.T
	*cluster
	ns string
}

// begin starts a test that runs beside others.
func begin(t *testing.T) *scene {
	t.Helper()
	if one == nil {
		t.Skip("LOCALCLUSTER_BIN is not set")
	}
	t.Parallel()
	return beginAlone(t)
}

// beginAlone starts a test that others must not run beside.
func beginAlone(t *testing.T) *scene {
	t.Helper()
	ns, err := one.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, cluster: one, ns: ns.Name}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := one.command("kubectl", "-n", s.ns, "get", "pods,events", "-o", "wide").CombinedOutput()
			t.Logf("%s\nend of the agent's log:\n%s", out, tail(filepath.Join(one.dir, "logs", "node-agent.log"), 50))
		}
		_ = one.client.CoreV1().Namespaces().Delete(context.Background(), s.ns, metav1.DeleteOptions{})
	})
	// Pods are refused until their account is there, which a controller makes.
	s.eventually("the namespace has an account", func() bool {
		_, err := one.client.CoreV1().ServiceAccounts(s.ns).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return s
}

// tail is the last lines of a file, or why there are none.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (s *scene) kubectl(args ...string) *exec.Cmd {
	return s.command("kubectl", append([]string{"-n", s.ns}, args...)...)
}

// run runs kubectl to its end.
func (s *scene) run(args ...string) string {
	s.Helper()
	var out, errs bytes.Buffer
	cmd := s.kubectl(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &errs)
	}
	return out.String()
}

// runtime is a container that this binary plays.
func runtime(name string, args ...string) corev1.Container {
	return corev1.Container{Name: name, Image: "registry.example/vllm-runtime:1", Args: args}
}

func (s *scene) create(pod *corev1.Pod) *corev1.Pod {
	s.Helper()
	created, err := s.client.CoreV1().Pods(s.ns).Create(s.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return created
}

func makePod(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: containers}}
}

// pod is the pod now; nil if there is none.
func (s *scene) pod(name string) *corev1.Pod {
	s.Helper()
	pod, err := s.client.CoreV1().Pods(s.ns).Get(s.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return pod
}

func (s *scene) eventually(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("never: %s", what)
		}
	}
}

// becomes waits until the pod is as asked, and returns it.
func (s *scene) becomes(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	s.Helper()
	var pod *corev1.Pod
	s.eventually(name+" is "+what, func() bool {
		pod = s.pod(name)
		return pod != nil && is(pod)
	})
	return pod
}

func (s *scene) hasEvent(reason, message string) bool {
	s.Helper()
	events, err := s.client.CoreV1().Events(s.ns).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == reason && strings.Contains(e.Message, message) {
			return true
		}
	}
	return false
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}
