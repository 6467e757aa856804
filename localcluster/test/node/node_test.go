package node

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// live asks every second. An answer may take its time: only a bad one is a
// failure, of which there may be so many in a row.
func live(failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/live", Port: intstr.FromInt32(8000)}},
		PeriodSeconds: 1, TimeoutSeconds: 60, FailureThreshold: failures,
	}
}

// slow is as often as a program may be found not to listen yet.
const slow = 600

func server() corev1.Container {
	c := runtime("main", "serve")
	c.ReadinessProbe = live(1)
	c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return c
}

func (s *scene) deploy(name string, replicas int32, spec corev1.PodSpec) *appsv1.Deployment {
	s.Helper()
	labels := map[string]string{"app": name}
	d, err := s.client.AppsV1().Deployments(s.ns).Create(s.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *scene) podsOf(app string) []corev1.Pod {
	s.Helper()
	list, err := s.client.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// forward opens a port of a pod through kubectl and returns its URL.
func (s *scene) forward(target, port string) string {
	s.Helper()
	cmd := s.kubectl("port-forward", target, ":"+port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if s.Failed() {
			s.Logf("kubectl port-forward %s: %s", target, &complaint)
		}
	})
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	local := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	if err != nil || local == "" {
		s.Fatalf("kubectl port-forward said %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // it says more with each connection
	return "http://" + local
}

func (s *scene) get(url string) string {
	s.Helper()
	resp, err := http.Get(url)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(body)
}

func TestADeploymentIsServedAndCanBeWatched(t *testing.T) {
	s := begin(t)
	s.deploy("web", 2, corev1.PodSpec{Containers: []corev1.Container{server()}})
	s.eventually("both replicas are available", func() bool {
		d, err := s.client.AppsV1().Deployments(s.ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 2
	})
	name := s.podsOf("web")[0].Name

	logs := s.kubectl("logs", "-f", name)
	var complaint bytes.Buffer
	logs.Stderr = &complaint
	out, err := logs.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := logs.Start(); err != nil {
		t.Fatal(err)
	}
	// A log is followed from its first line on; a pod deleted before that line came
	// may be gone before kubectl asks for it.
	followed := bufio.NewReader(out)
	first, err := followed.ReadString('\n')
	if err != nil {
		t.Fatalf("kubectl logs -f ended with %v: %s", err, complaint.String())
	}
	if got, want := s.get(s.forward("pod/"+name, "8000")+"/hello"), "hello from "+name; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := s.client.CoreV1().Pods(s.ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// A followed log ends with its container.
	rest, err := io.ReadAll(followed)
	if err != nil {
		t.Fatal(err)
	}
	if err := logs.Wait(); err != nil {
		t.Fatalf("kubectl logs -f: %v: %s", err, complaint.String())
	}
	for _, want := range []string{"listening on 127.", "greeted", "asked to end"} {
		if text := first + string(rest); !strings.Contains(text, want) {
			t.Errorf("no %q in the log:\n%s", want, text)
		}
	}
}

func TestLogOptions(t *testing.T) {
	s := begin(t)
	s.create(makePod("p", runtime("main", "serve")))
	s.becomes("p", "ready", ready)
	s.eventually("it printed", func() bool { return strings.Contains(s.run("logs", "p"), "listening") })
	if got := s.run("logs", "--tail=1", "p"); !strings.HasPrefix(got, "listening") || strings.Count(got, "\n") != 1 {
		t.Errorf("--tail=1: %q", got)
	}
	at, _, _ := strings.Cut(s.run("logs", "--timestamps", "p"), " ")
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
		t.Errorf("--timestamps: %v", err)
	}
	if out, err := s.kubectl("exec", "p", "--", "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "nothing to exec into") {
		t.Errorf("exec: %v %s", err, out)
	}
}

func TestAJobCompletes(t *testing.T) {
	s := begin(t)
	job := func(name string, backoff int32, c corev1.Container) {
		if _, err := s.client.BatchV1().Jobs(s.ns).Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{BackoffLimit: &backoff, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{c},
			}}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	job("good", 0, runtime("main", "sleep", "1s"))
	job("bad", 0, runtime("main", "exit", "3"))
	is := func(name string, condition batchv1.JobConditionType) bool {
		j, err := s.client.BatchV1().Jobs(s.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, c := range j.Status.Conditions {
			if c.Type == condition && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
	s.eventually("the good job is complete", func() bool { return is("good", batchv1.JobComplete) })
	s.eventually("the bad job has failed", func() bool { return is("bad", batchv1.JobFailed) })
}

func TestInitContainersAndASidecar(t *testing.T) {
	s := begin(t)
	mount := []corev1.VolumeMount{{Name: "work", MountPath: "/shared"}}
	write, side, reader := runtime("write", "write", "/shared/note", "handed over"), runtime("side", "serve"), runtime("main", "print", "/shared/note")
	write.VolumeMounts, reader.VolumeMounts = mount, mount
	side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	side.StartupProbe = live(slow)
	pod := makePod("p", reader)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.InitContainers = []corev1.Container{write, side}
	pod.Spec.Volumes = []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	s.create(pod)
	end := s.becomes("p", "through", inPhase(corev1.PodSucceeded))
	if got := s.run("logs", "p", "-c", "main"); !strings.Contains(got, "handed over") {
		t.Errorf("main printed %q", got)
	}
	if got := end.Status.InitContainerStatuses[1].State.Terminated; got == nil || got.ExitCode != 0 {
		t.Errorf("sidecar %v", got)
	}
}

func TestACrashingContainerBacksOff(t *testing.T) {
	s := begin(t)
	c := runtime("main", "exit", "3")
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	s.create(makePod("p", c))
	pod := s.becomes("p", "backing off for the second time", func(pod *corev1.Pod) bool {
		cs := pod.Status.ContainerStatuses
		return len(cs) == 1 && cs[0].RestartCount >= 2 && cs[0].State.Waiting != nil && cs[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	if last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 3 || !strings.Contains(last.Message, "giving up") {
		t.Errorf("last termination %v", last)
	}
	if got := s.run("logs", "--previous", "p"); !strings.Contains(got, "giving up") {
		t.Errorf("the log of the run before: %q", got)
	}
	s.eventually("an event says so", func() bool { return s.hasEvent("BackOff", "Back-off restarting failed container main") })
}

func TestAStubbornContainerIsKilledAfterItsGracePeriod(t *testing.T) {
	s := begin(t)
	pod := makePod("p", runtime("main", "stubborn"))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(3600)) // the deletion's own counts
	s.create(pod)
	s.eventually("it ignores SIGTERM", func() bool {
		out, _ := s.kubectl("logs", "p").Output()
		return strings.Contains(string(out), "ignoring")
	})
	begun := time.Now()
	if err := s.client.CoreV1().Pods(s.ns).Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(3))}); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is gone", func() bool { return s.pod("p") == nil })
	if took := time.Since(begun); took < 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestAMissingSecretIsWaitedFor(t *testing.T) {
	s := begin(t)
	mounted := makePod("mounted", runtime("main", "print", "/secret/word"))
	mounted.Spec.RestartPolicy = corev1.RestartPolicyNever
	mounted.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
	mounted.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/secret"}}
	s.create(mounted)
	variable := makePod("variable", runtime("main", "write", "word", "$(word)"))
	variable.Spec.RestartPolicy = corev1.RestartPolicyNever
	variable.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	s.create(variable)

	s.becomes("variable", "waiting for its secret", func(pod *corev1.Pod) bool {
		cs := pod.Status.ContainerStatuses
		return len(cs) == 1 && cs[0].State.Waiting != nil && cs[0].State.Waiting.Reason == "CreateContainerConfigError" && cs[0].State.Waiting.Message == `secret "s" not found`
	})
	s.eventually("the mount has failed", func() bool { return s.hasEvent("FailedMount", `secret "s" not found`) })
	if _, err := s.client.CoreV1().Secrets(s.ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"word": "sesame"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mounted", "variable"} {
		s.becomes(name, "through", inPhase(corev1.PodSucceeded))
		if got := s.run("logs", name); !strings.Contains(got, "sesame") {
			t.Errorf("%s printed %q", name, got)
		}
	}
}

func TestAConfigMapVolumeFollowsItsObject(t *testing.T) {
	s := begin(t)
	cm, err := s.client.CoreV1().ConfigMaps(s.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm"}, Data: map[string]string{"a": "old"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := server()
	c.Env = []corev1.EnvVar{{Name: "FILE", Value: "/conf/a"}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/conf"}}
	pod := makePod("p", c)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}}
	s.create(pod)
	s.becomes("p", "ready", ready)
	url := s.forward("pod/p", "8000") + "/file?env=FILE"
	if got := s.get(url); got != "old" {
		t.Errorf("at first %q", got)
	}
	cm.Data["a"] = "new"
	if _, err := s.client.CoreV1().ConfigMaps(s.ns).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the file is new", func() bool { return s.get(url) == "new" })
}

func TestAPodSpeaksToTheAPIWithItsServiceAccount(t *testing.T) {
	s := begin(t)
	pod := makePod("p", runtime("main", "whoami"))
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	s.create(pod)
	s.becomes("p", "through", inPhase(corev1.PodSucceeded))
	if got, want := s.run("logs", "p"), fmt.Sprintf("I am system:serviceaccount:%s:default", s.ns); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPersistentVolumeOutlivesItsPods(t *testing.T) {
	s := begin(t)
	if _, err := s.client.CoreV1().PersistentVolumeClaims(s.ns).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name string
		args []string
	}{{"writer", []string{"write", "/data/x", "kept"}}, {"reader", []string{"print", "/data/x"}}} {
		pod := makePod(p.name, runtime("main", p.args...))
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/data"}}
		s.create(pod)
		s.becomes(p.name, "through", inPhase(corev1.PodSucceeded))
	}
	if got := s.run("logs", "reader"); !strings.Contains(got, "kept") {
		t.Errorf("read %q", got)
	}
}

func TestAFailedLivenessProbeRestartsTheContainer(t *testing.T) {
	s := begin(t)
	c := server()
	c.LivenessProbe = live(1)
	c.StartupProbe = live(slow) // one that has not begun to listen is well
	s.create(makePod("p", c))
	s.becomes("p", "ready", ready)
	s.get(s.forward("pod/p", "8000") + "/break")
	pod := s.becomes("p", "restarted and ready", func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 1
	})
	if last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 0 {
		t.Errorf("last termination %v", last)
	}
	s.eventually("events say so", func() bool {
		return s.hasEvent("Unhealthy", "Liveness probe failed") && s.hasEvent("Killing", "failed liveness probe, will be restarted")
	})
}

func TestFaultsOnDemand(t *testing.T) {
	s := begin(t)
	waits := func(reason string) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool {
			cs := pod.Status.ContainerStatuses
			return len(cs) == 1 && cs[0].State.Waiting != nil && cs[0].State.Waiting.Reason == reason
		}
	}
	pod := makePod("unpullable", runtime("main", "serve"))
	pod.Annotations = map[string]string{"localcluster.dynamo/image-pull-error": "true"}
	s.create(pod)
	pod = makePod("oom", runtime("main", "serve"))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Annotations = map[string]string{"localcluster.dynamo/oom-after": "1s"}
	s.create(pod)
	s.becomes("unpullable", "backing off", waits("ImagePullBackOff"))
	end := s.becomes("oom", "failed", inPhase(corev1.PodFailed))
	if got := end.Status.ContainerStatuses[0].State.Terminated; got.Reason != "OOMKilled" || got.ExitCode != 137 {
		t.Errorf("end %v", got)
	}
	s.run("annotate", "pod", "unpullable", "localcluster.dynamo/image-pull-error-")
	s.becomes("unpullable", "ready at last", ready)
}

// Disasters take nodes and the agent away from whatever else runs, so they are
// not parallel: the other tests wait for their end.
func TestDisasters(t *testing.T) {
	if one == nil {
		t.Skip("LOCALCLUSTER_BIN is not set")
	}
	t.Run("a lost node's pods go elsewhere, and it returns clean", lostNode)
	t.Run("a killed agent leaves nothing behind, and its pods start again", killedAgent)
}

func lostNode(t *testing.T) {
	s := beginAlone(t)
	impatient := []corev1.Toleration{
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1))},
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1))},
	}
	s.deploy("web", 1, corev1.PodSpec{Containers: []corev1.Container{server()}, Tolerations: impatient})
	readyOn := func(not string) *corev1.Pod {
		for _, pod := range s.podsOf("web") {
			if ready(&pod) && pod.Spec.NodeName != not {
				return &pod
			}
		}
		return nil
	}
	var first *corev1.Pod
	s.eventually("it is ready", func() bool { first = readyOn(""); return first != nil })
	annotate := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"localcluster.dynamo/lost":%s}}}`, value)
		if _, err := s.client.CoreV1().Nodes().Patch(t.Context(), first.Spec.NodeName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	annotate(`"true"`)
	s.eventually("it is ready on another node", func() bool { return readyOn(first.Spec.NodeName) != nil })
	if pod := s.pod(first.Name); pod == nil || pod.DeletionTimestamp == nil {
		t.Error("the API cannot know that the first pod has ended")
	}
	annotate("null")
	s.eventually("the first pod is gone", func() bool { return s.pod(first.Name) == nil })
	folder := filepath.Join(s.dir, "pods", fmt.Sprintf("%s_%s_%s", s.ns, first.Name, first.UID))
	s.eventually("so is its folder", func() bool { _, err := os.Stat(folder); return os.IsNotExist(err) })
	s.eventually("the node is ready", func() bool {
		node, err := s.client.CoreV1().Nodes().Get(t.Context(), first.Spec.NodeName, metav1.GetOptions{})
		if err != nil || len(node.Spec.Taints) > 0 {
			return false
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	})
}

func killedAgent(t *testing.T) {
	s := beginAlone(t)
	s.create(makePod("p", server()))
	before := s.becomes("p", "ready", ready)
	agent, child := s.processes(before)
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.eventually("the process has died with its agent", func() bool { return !alive(child) })
	after := s.becomes("p", "ready again", func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount > 0
	})
	if after.Status.PodIP != before.Status.PodIP {
		t.Errorf("address %s, want %s", after.Status.PodIP, before.Status.PodIP)
	}
}

// processes finds the process of a pod's container, and its parent, the agent.
func (s *scene) processes(pod *corev1.Pod) (agent, child int) {
	s.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.Fatal(err)
	}
	for _, path := range stats {
		env, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(env), "DYNAMO_POD_IP="+pod.Status.PodIP+"\x00") {
			continue
		}
		child, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil {
			continue
		}
		// pid (name) state ppid ...
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		agent, _ = strconv.Atoi(fields[1])
		return agent, child
	}
	s.Fatalf("no process of pod %s", pod.Name)
	return 0, 0
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
