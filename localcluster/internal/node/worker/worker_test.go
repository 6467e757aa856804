package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makePod has one container main, played by the mocker with the argument main.
func makePod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", ResourceVersion: "1", Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName: "node-0", RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []corev1.Container{makeContainer("main")},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func makeContainer(name string) corev1.Container {
	return corev1.Container{Name: name, Image: "vllm-runtime", Args: []string{name}}
}

func policy(p corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
}

func image(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = name }
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[key] = value }
}

func withInit(containers ...corev1.Container) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.InitContainers = containers }
}

func makeSidecar(name string) corev1.Container {
	c := makeContainer(name)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

func get(path string, period int32) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path}}, PeriodSeconds: period, FailureThreshold: 3, SuccessThreshold: 1, TimeoutSeconds: 1}
}

// ending is a script in which every program ends after a second, with the code
// that stands beside its name.
func ending(codes map[string]int) func([]string) *actor {
	return func(args []string) *actor {
		code, ok := codes[args[0]]
		if !ok {
			return &actor{}
		}
		return &actor{lasting: time.Second, code: code}
	}
}

func TestAPodRuns(t *testing.T) {
	perform(t, makePod(), func(st *stage) {
		st.start()
		st.expect("Running ready=True main:running")
		if got, want := st.status().PodIP, "10.17.0.2"; got != want {
			t.Errorf("pod IP %s, want %s", got, want)
		}
		before := st.sent()
		st.after(time.Hour)
		if st.sent() != before {
			t.Errorf("%d patches while nothing changed", st.sent()-before)
		}
	})
}

func TestRestartPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		policy corev1.RestartPolicy
		code   int
		want   string // after three seconds; the first restart comes at once, the second after 1 s
	}{
		"Always restarts after a success":     {corev1.RestartPolicyAlways, 0, "Running ready=True main:runningx2"},
		"Always restarts after a failure":     {corev1.RestartPolicyAlways, 1, "Running ready=True main:runningx2"},
		"OnFailure is content with a success": {corev1.RestartPolicyOnFailure, 0, "Succeeded ready=False main:Completed(0)"},
		"OnFailure restarts after a failure":  {corev1.RestartPolicyOnFailure, 1, "Running ready=True main:runningx2"},
		"Never takes a success":               {corev1.RestartPolicyNever, 0, "Succeeded ready=False main:Completed(0)"},
		"Never takes a failure":               {corev1.RestartPolicyNever, 1, "Failed ready=False main:Error(1)"},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, makePod(policy(c.policy)), func(st *stage) {
				st.script = ending(map[string]int{"main": c.code})
				st.start()
				st.after(3500 * time.Millisecond)
				st.expect(c.want)
			})
		})
	}
}

func TestCrashBackOffDoublesUpToItsMaximum(t *testing.T) {
	perform(t, makePod(), func(st *stage) {
		var starts []time.Duration
		st.script = func([]string) *actor {
			starts = append(starts, time.Since(bubbleBegin))
			return &actor{lasting: time.Millisecond, code: 1}
		}
		st.start()
		st.after(2500 * time.Millisecond)
		st.expect("Running ready=False main:CrashLoopBackOffx2")
		if got := st.status().ContainerStatuses[0].LastTerminationState.Terminated; got == nil || got.ExitCode != 1 {
			t.Errorf("last termination %v", got)
		}
		st.after(2 * time.Minute)
		var pauses []time.Duration
		for i := 1; i < len(starts) && i < 9; i++ {
			pauses = append(pauses, (starts[i] - starts[i-1]).Round(time.Second))
		}
		want := []time.Duration{0, 1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}
		if diff := cmp.Diff(want, pauses); diff != "" {
			t.Error(diff)
		}
		if !st.heard("BackOff Back-off restarting failed container main in pod p_ns(u)") {
			t.Errorf("events %v", st.events)
		}
	})
}

func TestInitContainersRunInOrderBesideTheirSidecars(t *testing.T) {
	pod := makePod(withInit(makeContainer("first"), makeSidecar("side"), makeContainer("second")), policy(corev1.RestartPolicyNever))
	pod.Spec.InitContainers[1].StartupProbe = get("/up", 1)
	perform(t, pod, func(st *stage) {
		st.health("/up", errors.New("not yet"))
		st.script = ending(map[string]int{"first": 0, "second": 0, "main": 0})
		st.start()
		st.expect("Pending ready=False first:running side:PodInitializing second:PodInitializing main:PodInitializing")
		st.after(1500 * time.Millisecond)
		st.expect("Pending ready=False first:Completed(0) side:running second:PodInitializing main:PodInitializing")
		st.health("/up", nil)
		st.after(time.Second)
		st.expect("Pending ready=False first:Completed(0) side:running second:running main:PodInitializing")
		st.after(time.Second)
		st.expect("Running ready=True first:Completed(0) side:running second:Completed(0) main:running")
		st.after(time.Second)
		st.expect("Succeeded ready=False first:Completed(0) side:Error(143) second:Completed(0) main:Completed(0)")
	})
}

func TestSidecarsStopAfterTheOthersInReverse(t *testing.T) {
	perform(t, makePod(withInit(makeSidecar("one"), makeSidecar("two"))), func(st *stage) {
		st.start()
		st.delete(30)
		<-st.w.Done()
		want := []string{"main terminated", "two terminated", "one terminated"}
		if diff := cmp.Diff(want, st.signals); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAFailedInitContainer(t *testing.T) {
	for name, c := range map[string]struct {
		policy corev1.RestartPolicy
		want   string
	}{
		"is tried again":                    {corev1.RestartPolicyAlways, "Pending ready=False init:runningx1 main:PodInitializing"},
		"fails the pod that never restarts": {corev1.RestartPolicyNever, "Failed ready=False init:Error(1) main:PodInitializing"},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, makePod(withInit(makeContainer("init")), policy(c.policy)), func(st *stage) {
				st.script = ending(map[string]int{"init": 1})
				st.start()
				st.after(1500 * time.Millisecond)
				st.expect(c.want)
			})
		})
	}
}

func TestDeletion(t *testing.T) {
	t.Run("a process that listens ends at once, and the object goes", func(t *testing.T) {
		perform(t, makePod(), func(st *stage) {
			st.start()
			st.delete(30)
			<-st.w.Done()
			st.expect("Failed ready=False main:Error(143)")
			if !st.removed || time.Since(bubbleBegin) > time.Second {
				t.Errorf("removed %v after %v", st.removed, time.Since(bubbleBegin))
			}
		})
	})
	t.Run("a stubborn process is killed when the grace period is over", func(t *testing.T) {
		perform(t, makePod(), func(st *stage) {
			st.script = func([]string) *actor { return &actor{stubborn: true} }
			st.start()
			st.delete(30)
			st.expect("Running ready=False main:running")
			st.after(29 * time.Second)
			st.expect("Running ready=False main:running")
			st.after(2 * time.Second)
			st.expect("Failed ready=False main:Error(137)")
		})
	})
	t.Run("a second deletion may shorten the grace period", func(t *testing.T) {
		perform(t, makePod(), func(st *stage) {
			st.script = func([]string) *actor { return &actor{stubborn: true} }
			st.start()
			st.delete(300)
			st.after(time.Second)
			st.delete(5)
			<-st.w.Done()
			if got := time.Since(bubbleBegin).Round(time.Second); got != 6*time.Second {
				t.Errorf("done after %v", got)
			}
		})
	})
	t.Run("the preStop hook comes first", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/drain"}}}
		perform(t, pod, func(st *stage) {
			st.start()
			st.delete(30)
			<-st.w.Done()
			if diff := cmp.Diff([]string{"GET /drain", "main terminated"}, st.signals); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("a sleeping preStop hook is part of the grace period", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 600}}}
		perform(t, pod, func(st *stage) {
			st.start()
			st.delete(10)
			<-st.w.Done()
			if got := time.Since(bubbleBegin).Round(time.Second); got != 10*time.Second {
				t.Errorf("done after %v", got)
			}
		})
	})
	t.Run("a pod that vanished is killed without a word", func(t *testing.T) {
		perform(t, makePod(), func(st *stage) {
			st.script = func([]string) *actor { return &actor{stubborn: true} }
			st.start()
			before := st.sent()
			st.w.Vanish()
			<-st.w.Done()
			if st.removed || st.sent() != before {
				t.Errorf("removed %v, %d patches", st.removed, st.sent()-before)
			}
			if diff := cmp.Diff([]string{"main terminated", "main killed"}, st.signals); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("a pod that had finished is removed when it is deleted", func(t *testing.T) {
		perform(t, makePod(policy(corev1.RestartPolicyNever)), func(st *stage) {
			st.script = ending(map[string]int{"main": 0})
			st.start()
			st.after(time.Minute)
			st.expect("Succeeded ready=False main:Completed(0)")
			if st.removed {
				t.Fatal("removed before it was deleted")
			}
			st.delete(30)
			<-st.w.Done()
			if !st.removed {
				t.Error("not removed")
			}
		})
	})
	t.Run("a pod that waits for a secret can be deleted", func(t *testing.T) {
		perform(t, makePod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
		}), func(st *stage) {
			st.start()
			st.after(time.Minute)
			st.delete(30)
			<-st.w.Done()
			if !st.removed {
				t.Error("not removed")
			}
		})
	})
}

func TestMissingContent(t *testing.T) {
	t.Run("a volume's secret is waited for", func(t *testing.T) {
		perform(t, makePod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
		}), func(st *stage) {
			st.start()
			st.after(time.Minute)
			st.expect("Pending ready=False main:ContainerCreating")
			if got := st.countEvents(`FailedMount MountVolume.SetUp failed for volume "v" : secret "s" not found`); got != 1 {
				t.Errorf("%d events: %v", got, st.events)
			}
			st.setSecret("s", nil)
			st.w.Refresh()
			st.after(0)
			st.expect("Running ready=True main:running")
		})
	})
	t.Run("a variable's secret is waited for", func(t *testing.T) {
		perform(t, makePod(func(p *corev1.Pod) {
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		}), func(st *stage) {
			st.start()
			st.after(time.Minute)
			st.expect("Pending ready=False main:CreateContainerConfigError")
			if got := st.status().ContainerStatuses[0].State.Waiting.Message; got != `secret "s" not found` {
				t.Errorf("message %s", got)
			}
			st.setSecret("s", map[string][]byte{"A": []byte("b")})
			st.after(again)
			st.expect("Running ready=True main:running")
			if !slices.Contains(st.launches()[0].Env, "A=b") {
				t.Errorf("environment %v", st.launches()[0].Env)
			}
		})
	})
}

func TestProbes(t *testing.T) {
	t.Run("readiness follows its probe", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].ReadinessProbe = get("/health", 1)
		perform(t, pod, func(st *stage) {
			st.health("/health", errors.New("no"))
			st.start()
			st.after(5 * time.Second)
			st.expect("Running ready=False main:running")
			st.health("/health", nil)
			st.after(time.Second)
			st.expect("Running ready=True main:running")
			st.health("/health", errors.New("no"))
			st.after(2 * time.Second)
			st.expect("Running ready=True main:running")
			st.after(time.Second)
			st.expect("Running ready=False main:running")
			if !st.heard("Unhealthy Readiness probe failed: no") {
				t.Errorf("events %v", st.events)
			}
		})
	})
	t.Run("readiness is tried right after startup", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].StartupProbe = get("/up", 1)
		pod.Spec.Containers[0].ReadinessProbe = get("/health", 3600)
		perform(t, pod, func(st *stage) {
			st.health("/up", errors.New("no"))
			st.start()
			st.after(1500 * time.Millisecond)
			st.expect("Running ready=False main:running")
			st.health("/up", nil)
			st.after(time.Second)
			st.expect("Running ready=True main:running")
		})
	})
	t.Run("a failed startup restarts the container", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].StartupProbe = get("/up", 1)
		perform(t, pod, func(st *stage) {
			st.health("/up", errors.New("no"))
			st.start()
			st.after(3500 * time.Millisecond)
			st.expect("Running ready=False main:runningx1")
			if !st.heard("Killing Container main failed startup probe, will be restarted") {
				t.Errorf("events %v", st.events)
			}
		})
	})
	t.Run("a failed liveness restarts the container, with the probe's grace period", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].LivenessProbe = get("/live", 1)
		pod.Spec.Containers[0].LivenessProbe.TerminationGracePeriodSeconds = new(int64(2))
		perform(t, pod, func(st *stage) {
			st.script = func([]string) *actor { return &actor{stubborn: true} }
			st.start()
			st.after(1500 * time.Millisecond)
			st.health("/live", errors.New("no"))
			st.after(3 * time.Second)
			st.expect("Running ready=True main:running")
			st.health("/live", nil)
			st.after(2 * time.Second)
			st.expect("Running ready=True main:runningx1")
			if diff := cmp.Diff([]string{"main terminated", "main killed"}, st.signals); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("nobody asks a container that nobody plays", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].Image = "nginx"
		pod.Spec.Containers[0].ReadinessProbe = get("/health", 1)
		perform(t, pod, func(st *stage) {
			st.health("/health", errors.New("no"))
			st.start()
			st.after(time.Minute)
			st.expect("Running ready=True main:running")
			if got := st.countEvents("UnknownImage No program here plays image nginx: it idles"); got != 1 {
				t.Errorf("events %v", st.events)
			}
		})
	})
	t.Run("a program in a probe is not run, and that is said once", func(t *testing.T) {
		pod := makePod()
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}, PeriodSeconds: 1}
		perform(t, pod, func(st *stage) {
			st.start()
			st.after(time.Minute)
			st.expect("Running ready=True main:running")
			if got := st.countEvents("ExecNotRun"); got != 1 {
				t.Errorf("%d events", got)
			}
		})
	})
}

func TestAnUnknownImageEndsWhereOthersWaitForIt(t *testing.T) {
	pod := makePod(withInit(corev1.Container{Name: "init", Image: "busybox"}), policy(corev1.RestartPolicyOnFailure))
	pod.Spec.Containers[0].Image = "curl"
	perform(t, pod, func(st *stage) {
		st.start()
		st.expect("Succeeded ready=False init:Completed(0) main:Completed(0)")
	})
}

func TestActiveDeadline(t *testing.T) {
	perform(t, makePod(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(10)) }), func(st *stage) {
		st.start()
		st.after(9 * time.Second)
		st.expect("Running ready=True main:running")
		st.after(2 * time.Second)
		st.expect("Failed ready=False DeadlineExceeded main:Error(143)")
		if st.removed {
			t.Error("removed without having been deleted")
		}
	})
}

// How far the container has come when its pod is evicted is not decided.
func TestAnEvictedPodHasFailed(t *testing.T) {
	perform(t, makePod(annotated(FaultEvict, "memory")), func(st *stage) {
		st.start()
		st.after(time.Second)
		if got := st.line(); !strings.HasPrefix(got, "Failed ready=False Evicted ") {
			t.Errorf("got %s", got)
		}
	})
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		faults []func(*corev1.Pod)
		after  time.Duration
		want   string
	}{
		"an image that cannot be pulled":         {[]func(*corev1.Pod){annotated(FaultImagePull, "true")}, 500 * time.Millisecond, "Pending ready=False main:ErrImagePull"},
		"and cannot be pulled again":             {[]func(*corev1.Pod){annotated(FaultImagePull, "true")}, 1500 * time.Millisecond, "Pending ready=False main:ImagePullBackOff"},
		"an image whose name is none":            {[]func(*corev1.Pod){image("Engine:1")}, time.Minute, "Pending ready=False main:InvalidImageName"},
		"a program that cannot be started":       {[]func(*corev1.Pod){annotated(FaultStart, "exec: no such file"), policy(corev1.RestartPolicyNever)}, time.Second, "Failed ready=False main:StartError(128)"},
		"a crash some time after the start":      {[]func(*corev1.Pod){annotated(FaultCrashAfter, "5s"), policy(corev1.RestartPolicyNever)}, 6 * time.Second, "Failed ready=False main:Error(137)"},
		"not before":                             {[]func(*corev1.Pod){annotated(FaultCrashAfter, "5s")}, 4 * time.Second, "Running ready=True main:running"},
		"a crash with a code":                    {[]func(*corev1.Pod){annotated(FaultCrashAfter, "5s"), annotated(FaultExitCode, "3"), policy(corev1.RestartPolicyNever)}, 6 * time.Second, "Failed ready=False main:Error(3)"},
		"a lack of memory":                       {[]func(*corev1.Pod){annotated(FaultOOMAfter, "5s"), policy(corev1.RestartPolicyNever)}, 6 * time.Second, "Failed ready=False main:OOMKilled(137)"},
		"never ready, even without a probe":      {[]func(*corev1.Pod){annotated(FaultNeverReady, "true")}, time.Hour, "Running ready=False main:running"},
		"what is not understood changes nothing": {[]func(*corev1.Pod){annotated(FaultCrashAfter, "soon")}, time.Minute, "Running ready=True main:running"},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, makePod(c.faults...), func(st *stage) {
				st.start()
				st.after(c.after)
				st.expect(c.want)
			})
		})
	}
	t.Run("an image that can be pulled at last", func(t *testing.T) {
		perform(t, makePod(annotated(FaultImagePull, "true")), func(st *stage) {
			st.start()
			st.after(time.Minute)
			st.edit(func(p *corev1.Pod) { delete(p.Annotations, FaultImagePull) })
			st.expect("Running ready=True main:running")
		})
	})
	t.Run("a slow start", func(t *testing.T) {
		perform(t, makePod(annotated(FaultSlowStart, "20s")), func(st *stage) {
			st.start()
			st.after(19 * time.Second)
			if len(st.launches()) != 0 {
				t.Fatal("started early")
			}
			st.after(2 * time.Second)
			if len(st.launches()) != 1 {
				t.Fatal("not started")
			}
		})
	})
}

func TestARestartedAgent(t *testing.T) {
	ran := func(pod *corev1.Pod) {
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.17.3.4", ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", ContainerID: "localcluster://x", RestartCount: 4,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}}
	}
	t.Run("starts its pods again, at their addresses", func(t *testing.T) {
		perform(t, makePod(ran), func(st *stage) {
			st.start()
			st.expect("Running ready=True main:runningx5")
			if got := st.status().PodIP; got != "10.17.3.4" {
				t.Errorf("address %s", got)
			}
			if got := st.w.Host(); got != "127.17.3.4" {
				t.Errorf("host %s", got)
			}
			if end := st.status().ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.Reason != "ContainerStatusUnknown" {
				t.Errorf("last termination %v", end)
			}
		})
	})
	t.Run("does not start what never restarts", func(t *testing.T) {
		perform(t, makePod(ran, policy(corev1.RestartPolicyNever)), func(st *stage) {
			st.start()
			st.expect("Failed ready=False main:ContainerStatusUnknown(137)x4")
		})
	})
	t.Run("does not touch what had finished", func(t *testing.T) {
		perform(t, makePod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), func(st *stage) {
			st.start()
			st.after(time.Hour)
			if st.sent() != 0 || len(st.launches()) != 0 {
				t.Errorf("%d patches, %d launches", st.sent(), len(st.launches()))
			}
		})
	})
	t.Run("does not start what is being deleted", func(t *testing.T) {
		perform(t, makePod(ran, func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
		}), func(st *stage) {
			st.start()
			<-st.w.Done()
			if len(st.launches()) != 0 || !st.removed {
				t.Errorf("%d launches, removed %v", len(st.launches()), st.removed)
			}
		})
	})
}

func TestASilencedPodDoesNotSpeak(t *testing.T) {
	perform(t, makePod(), func(st *stage) {
		st.script = func([]string) *actor { return &actor{stubborn: true} }
		st.start()
		before := st.sent()
		st.w.Silence(3 * time.Second)
		<-st.w.Done()
		if st.sent() != before || st.removed {
			t.Errorf("%d patches, removed %v", st.sent()-before, st.removed)
		}
		if got := time.Since(bubbleBegin); got != 3*time.Second {
			t.Errorf("took %v", got)
		}
	})
}

func TestANewImageRestartsTheContainer(t *testing.T) {
	perform(t, makePod(), func(st *stage) {
		st.start()
		st.edit(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "vllm-runtime:2" })
		st.expect("Running ready=True main:runningx1")
		if got := st.status().ContainerStatuses[0].Image; got != "vllm-runtime:2" {
			t.Errorf("image %s", got)
		}
	})
}

func TestWhatAProcessGets(t *testing.T) {
	pod := makePod(func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}},
		}
		c := &p.Spec.Containers[0]
		c.Command, c.Args = []string{"python3", "-m", "dynamo.vllm"}, []string{"--dir=$(DIR)"}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "access", MountPath: tokenMount}}
		c.Env = []corev1.EnvVar{
			{Name: "DIR", Value: "/data/x"},
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "DYNAMO_LISTEN_HOST", Value: "0.0.0.0"},
		}
		c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
	})
	perform(t, pod, func(st *stage) {
		st.start()
		got := st.launches()[0]
		root := filepath.Join(st.host.Dir, "pods", "ns_p_u")
		if diff := cmp.Diff([]string{"python3", "-m", "dynamo.vllm", "--dir=" + root + "/volumes/data/x"}, got.Args); diff != "" {
			t.Error(diff)
		}
		if got.Path != "/bin-dir/dynamo-mocker" {
			t.Errorf("program %s", got.Path)
		}
		env := map[string]string{}
		for _, v := range got.Env {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		want := map[string]string{
			"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"DIR":  root + "/volumes/data/x", "IP": "10.17.0.2",
			"HOSTNAME": "p", "HOME": root + "/containers/main/work",
			"KUBECONFIG": root + "/containers/main/kubeconfig", "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443",
			"DYNAMO_LISTEN_HOST": "127.17.0.2", "DYNAMO_POD_IP": "10.17.0.2", "DYNAMO_FORWARD_PROXY": "http://127.0.0.1:1", "DYNAMO_CONTAINER_IMAGE": "vllm-runtime", "DYNAMO_GPUS": "4",
			"DYNAMO_MOUNTS": `{"` + root + `/volumes/access":"` + tokenMount + `","` + root + `/volumes/data":"/data"}`,
		}
		if diff := cmp.Diff(want, env); diff != "" {
			t.Error(diff)
		}
		kubeconfig, err := os.ReadFile(env["KUBECONFIG"])
		if err != nil {
			t.Fatal(err)
		}
		if text := string(kubeconfig); !strings.Contains(text, "tokenFile: "+root+"/volumes/access/token") {
			t.Error(text)
		}
	})
}

func TestTerminationMessages(t *testing.T) {
	pod := makePod(policy(corev1.RestartPolicyNever))
	pod.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	perform(t, pod, func(st *stage) {
		st.script = func([]string) *actor { return &actor{lasting: time.Second, code: 1, says: "out of luck"} }
		st.start()
		st.after(2 * time.Second)
		if got := st.status().ContainerStatuses[0].State.Terminated.Message; got != "out of luck\n" {
			t.Errorf("message %q", got)
		}
	})
}

func TestAProgramThatCannotStart(t *testing.T) {
	perform(t, makePod(policy(corev1.RestartPolicyNever)), func(st *stage) {
		st.script = func([]string) *actor { return nil }
		st.start()
		st.expect("Failed ready=False main:StartError(128)")
	})
}

func TestLog(t *testing.T) {
	perform(t, makePod(), func(st *stage) {
		st.script = func([]string) *actor { return &actor{lasting: time.Second, code: 1} }
		st.start()
		base := func(previous bool) string {
			path, _, err := st.w.Log("main", previous)
			if err != nil {
				return err.Error()
			}
			return filepath.Base(path)
		}
		if got := base(false); got != "0.log" {
			t.Errorf("first run: %s", got)
		}
		if got, want := base(true), `previous terminated container "main" in pod "p" not found`; got != want {
			t.Errorf("before the first run: %s", got)
		}
		st.after(1500 * time.Millisecond)
		if got := base(false) + " " + base(true); got != "1.log 0.log" {
			t.Errorf("second run: %s", got)
		}
		st.after(time.Second)
		st.expect("Running ready=False main:CrashLoopBackOffx1")
		if got := base(false) + " " + base(true); got != "1.log 1.log" {
			t.Errorf("between runs: %s", got)
		}
		if _, _, err := st.w.Log("zz", false); err == nil {
			t.Error("no error for a container that does not exist")
		}
	})
}
