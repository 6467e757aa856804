package diagnosis

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// pod makes a pod on node-1 with one container, which is not ready.
func pod(change ...func(*corev1.Pod)) corev1.Pod {
	get := func(path string, port intstr.IntOrString) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port}}}
	}
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "main", Image: "example.com/engine:1",
			LivenessProbe:  get("/live", intstr.FromString("system")),
			ReadinessProbe: get("/health", intstr.FromInt32(9090)),
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("4")},
				Limits:   corev1.ResourceList{"memory": resource.MustParse("2Gi")},
			},
		}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}},
		},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func named(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Name, p.UID = name, types.UID(name) }
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func made(second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(int64(second), 0) }
}

func unscheduled(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.ContainerStatuses = "", nil
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		}}
	}
}

func waits(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

func ended(code int32, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		waits("CrashLoopBackOff", "back-off 2m40s restarting failed container=main pod=p_ns(u)")(p)
		p.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message},
		}
	}
}

func runs(p *corev1.Pod) {
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func conditioned(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason})
	}
}

func mounts(v corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: v})
	}
}

func claims(name string) func(*corev1.Pod) {
	return mounts(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
}

func initContainer(state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "fetch", Image: "example.com/fetch:1"}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: state}}
		waits("PodInitializing", "")(p)
	}
}

func of(pods ...corev1.Pod) snapshot.Evidence { return snapshot.Evidence{Pods: pods} }

func refusedWith(message string) snapshot.Evidence {
	return snapshot.Evidence{Refused: []snapshot.Refusal{{By: "Deployment/x", Message: message}}}
}

func complaint(reason, message string) []snapshot.Complaint {
	return []snapshot.Complaint{{Pod: "u", Container: "main", Reason: reason, Message: message}}
}

const full = "0/12 nodes are available: 12 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/12 nodes are available: 12 No preemption victims found for incoming pod."

func TestFirst(t *testing.T) {
	pull := `rpc error: code = NotFound desc = failed to pull and unpack image "example.com/engine:1": failed to resolve reference "example.com/engine:1": example.com/engine:1: not found`
	cases := map[string]struct {
		seen    snapshot.Evidence
		reason  Reason
		message string
	}{
		"a quota without room": {refusedWith(`pods "x-6d4cf56db6-abcde" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=4`),
			QuotaExceeded, "ResourceQuota gpus leaves no room: asked for requests.nvidia.com/gpu=8, used requests.nvidia.com/gpu=0 of requests.nvidia.com/gpu=4"},
		"a quota that wants figures": {refusedWith(`pods "x-1" is forbidden: failed quota: mem: must specify limits.memory for: main`),
			QuotaExceeded, "ResourceQuota mem: must specify limits.memory for: main"},
		"what a StatefulSet says before it": {refusedWith(`create Pod x-0-0 in StatefulSet x-0 failed error: pods "x-0-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2`),
			QuotaExceeded, "ResourceQuota q leaves no room: asked for pods=1, used pods=2 of pods=2"},
		"a limit range": {refusedWith(`pods "x-1" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]`),
			LimitRangeViolated, "a LimitRange forbids: maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi"},
		"a pod security level": {refusedWith(`pods "x-1" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true)`),
			PodSecurityViolated, "the namespace's Pod Security level restricted forbids: allowPrivilegeEscalation != false, runAsNonRoot != true"},
		"an account that is not there": {refusedWith(`pods "x-1" is forbidden: error looking up service account ns/robot: serviceaccount "robot" not found`),
			ServiceAccountNotFound, "ServiceAccount robot does not exist"},
		"another refusal, whose pod has a new name each time": {refusedWith(`pods "x-zzzzz" is forbidden: no PriorityClass with name gold was found`),
			PodRefused, "the API server refuses the pod: no PriorityClass with name gold was found"},
		"a webhook": {refusedWith(`admission webhook "policy.example.com" denied the request: no latest tags`),
			PodRefused, `the API server refuses the pod: admission webhook "policy.example.com" denied the request: no latest tags`},

		"no node has enough": {of(pod(unscheduled(full))), Unschedulable, "needs 8 nvidia.com/gpu; 0 of 12 nodes fit: 12 Insufficient nvidia.com/gpu"},
		"no node is allowed": {of(pod(unscheduled("0/3 nodes are available: 1 node(s) had untolerated taint {gpu: }, 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."))),
			Unschedulable, "0 of 3 nodes fit: 1 node(s) had untolerated taint {gpu: }, 2 node(s) didn't match Pod's node affinity/selector"},
		"several things are short": {of(pod(unscheduled("0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."))),
			Unschedulable, "needs 4 cpu, 8 nvidia.com/gpu; 0 of 2 nodes fit: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu"},
		"a scheduler with words of its own": {of(pod(unscheduled("pod group is not ready, 1 Pending, 2 minAvailable."))),
			Unschedulable, "pod group is not ready, 1 Pending, 2 minAvailable"},
		"a group of nodes that is short": {of(
			pod(named("g-0-0"), labelled(lwsv1.SetNameLabelKey, "g-0"), func(p *corev1.Pod) { p.Annotations[lwsv1.SizeAnnotationKey] = "3" }, runs),
			pod(named("g-0-1"), labelled(lwsv1.SetNameLabelKey, "g-0"), unscheduled(full)),
		), GangIncomplete, "group g-0 is short by 2 of 3 pods: each needs 8 nvidia.com/gpu; 0 of 12 nodes fit: 12 Insufficient nvidia.com/gpu"},
		"a scaling group of Grove that is short": {of(
			pod(named("a"), labelled(common.LabelPodCliqueScalingGroup, "g-0-d"), labelled(common.LabelPodCliqueScalingGroupReplicaIndex, "1"), runs),
			pod(named("b"), labelled(common.LabelPodCliqueScalingGroup, "g-0-d"), labelled(common.LabelPodCliqueScalingGroupReplicaIndex, "1"), unscheduled(full)),
		), GangIncomplete, "group g-0-d-1 is short by 1 of 2 pods: each needs 8 nvidia.com/gpu; 0 of 12 nodes fit: 12 Insufficient nvidia.com/gpu"},
		"a claim that is not there": {of(pod(claims("models"), unscheduled(`0/12 nodes are available: persistentvolumeclaim "models" not found. not found`))),
			ClaimNotFound, "PersistentVolumeClaim models does not exist"},
		"a class that is not there": {snapshot.Evidence{
			Pods:    []corev1.Pod{pod(claims("models"), unscheduled("0/12 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"))},
			Unbound: []snapshot.Claim{{Name: "models", Class: "fast", ClassAbsent: true}},
		}, StorageClassNotFound, "PersistentVolumeClaim models asks for StorageClass fast, which does not exist"},
		"a claim without a class": {snapshot.Evidence{
			Pods:    []corev1.Pod{pod(claims("models"), unscheduled("pod has unbound immediate PersistentVolumeClaims"))},
			Unbound: []snapshot.Claim{{Name: "models"}},
		}, ClaimNotBound, "PersistentVolumeClaim models has no volume and names no StorageClass to make one"},
		"a class that made no volume": {snapshot.Evidence{
			Pods:    []corev1.Pod{pod(claims("models"), unscheduled("pod has unbound immediate PersistentVolumeClaims"))},
			Unbound: []snapshot.Claim{{Name: "models", Class: "slow"}},
		}, ClaimNotBound, "PersistentVolumeClaim models has no volume: StorageClass slow made none yet"},
		"a pod that nobody scheduled yet": {of(pod(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = "", nil })), Starting, "waits for a node"},
		"a pod behind a gate": {of(pod(unscheduled(""), func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated })),
			Starting, "waits until its scheduling gates are lifted"},

		"a pod that had to make room": {of(pod(conditioned(corev1.DisruptionTarget, corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Unix(1, 0)) })),
			Preempted, "a pod of higher priority took its place on node node-1"},
		"a node that does not answer": {of(pod(runs, conditioned(corev1.ContainersReady, corev1.ConditionTrue, ""))), NodeLost, "node node-1 does not answer"},
		"a pod deleted because its node does not answer": {of(pod(conditioned(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager"), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Unix(1, 0)) })),
			NodeLost, "node node-1 does not answer"},
		"an eviction, without its figures": {of(pod(func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: 3Mi. "}
		})), Evicted, "its node evicted the pod: The node was low on resource: memory"},
		"a pod that its node refused": {of(pod(func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"}
		})), NodeRefused, "its node refused the pod (UnexpectedAdmissionError): Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"},

		"an image that is not there":     {of(pod(waits("ErrImagePull", pull))), ImageNotFound, "image example.com/engine:1 does not exist in its registry"},
		"the same while the node pauses": {of(pod(waits("ImagePullBackOff", `Back-off pulling image "example.com/engine:1": ErrImagePull: `+pull))), ImageNotFound, "image example.com/engine:1 does not exist in its registry"},
		"a registry that wants to know who asks": {of(pod(waits("ErrImagePull", `failed to pull and unpack image "x": failed to resolve reference "x": pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`))),
			ImagePullDenied, "the registry does not give image example.com/engine:1 to this namespace"},
		"a registry out of reach": {of(pod(waits("ErrImagePull", `failed to do request: Head "https://example.com/v2/engine/manifests/1": dial tcp: lookup example.com on 10.0.0.10:53: no such host`))),
			ImagePullFailed, "image example.com/engine:1 cannot be pulled: no such host"},
		"an image that may not be pulled": {of(pod(waits("ErrImageNeverPull", `Container image "example.com/engine:1" is not present with pull policy of Never`))),
			ImagePullFailed, "image example.com/engine:1 is not on node node-1, and its pull policy is Never"},
		"a name that is none": {of(pod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "Engine" },
			waits("InvalidImageName", `Failed to apply default image tag "Engine": couldn't parse image name "Engine": invalid reference format: repository name (library/Engine) must be lowercase`))),
			InvalidImageName, `image name "Engine" is not valid: repository name (library/Engine) must be lowercase`},

		"an environment from a secret that is not there": {of(pod(waits("CreateContainerConfigError", `secret "token" not found`))), SecretNotFound, "Secret token does not exist"},
		"from a config map that is not there":            {of(pod(waits("CreateContainerConfigError", `configmap "settings" not found`))), ConfigMapNotFound, "ConfigMap settings does not exist"},
		"from a key that is not there": {of(pod(waits("CreateContainerConfigError", `couldn't find key hf in Secret ns/token`))),
			ConfigInvalid, "Secret token has no key hf, which container main refers to"},
		"a user that may not be root": {of(pod(waits("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "p_ns(u)", container: main)`))),
			ConfigInvalid, "container main cannot be made: container has runAsNonRoot and image will run as root"},
		"a volume of a secret that is not there": {snapshot.Evidence{
			Pods:   []corev1.Pod{pod(mounts(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}), waits("ContainerCreating", ""))},
			Absent: []graph.Ref{{Kind: "Secret", Name: "keys"}},
		}, SecretNotFound, "Secret keys does not exist"},
		"a volume that is not mounted": {snapshot.Evidence{
			Pods:       []corev1.Pod{pod(waits("ContainerCreating", ""))},
			Complaints: complaint("FailedMount", "MountVolume.SetUp failed for volume \"cfg\" : configmap references non-existent config key: nope"),
		}, VolumeMountFailed, "volume cfg cannot be mounted: configmap references non-existent config key: nope"},
		"an old complaint about a volume that is mounted by now": {snapshot.Evidence{
			Pods:       []corev1.Pod{pod(runs)},
			Complaints: complaint("FailedMount", "MountVolume.SetUp failed for volume \"cfg\" : timed out"),
		}, Starting, "container main is starting: its readiness probe (GET :9090/health) has not succeeded yet"},
		"containers that are being made": {of(pod(waits("ContainerCreating", ""))), Starting, "its containers are being created"},

		"a crash with words to its node": {of(pod(ended(3, "Error", "Traceback\n2026-11-15 10:00:01,123 ValueError: no such model\n"))), ContainerCrashed, "container main exited with code 3: ValueError: no such model"},
		"a crash with words in its log": {snapshot.Evidence{
			Pods:      []corev1.Pod{pod(ended(1, "Error", ""))},
			LastLines: map[snapshot.ContainerKey]string{{Pod: "u", Container: "main"}: "ERROR 11-15 10:00:01 [core.py:708] CUDA error"},
		}, ContainerCrashed, "container main exited with code 1: [core.py:708] CUDA error"},
		"a crash, in the next run":       {of(pod(ended(1, "Error", "boom"), runs)), ContainerCrashed, "container main exited with code 1: boom"},
		"a program that just ends":       {of(pod(ended(0, "Completed", ""))), ContainerCrashed, "container main ended by itself, without an error, though it is meant to go on"},
		"a lack of memory":               {of(pod(ended(137, "OOMKilled", ""))), OutOfMemory, "container main was killed for lack of memory (limit 2Gi)"},
		"a kill that nobody claims":      {of(pod(ended(137, "Error", ""))), ContainerCrashed, "container main exited with code 137"},
		"a crash of an init container":   {of(pod(initContainer(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 22, Message: "404"}}))), InitContainerFailed, "init container fetch exited with code 22: 404"},
		"an init container at work":      {of(pod(initContainer(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))), Starting, "init container fetch is running"},
		"a program that cannot be begun": {of(pod(ended(128, "StartError", `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "nope": executable file not found in $PATH: unknown`))), ContainerNotStarted, `container main cannot be started: exec: "nope": executable file not found in $PATH`},
		"liveness": {snapshot.Evidence{
			Pods:       []corev1.Pod{pod(ended(137, "Error", ""))},
			Complaints: complaint("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503"),
		}, LivenessProbeFailed, "container main was ended: its liveness probe (GET :system/live) failed"},
		"startup": {snapshot.Evidence{
			Pods:       []corev1.Pod{pod(ended(143, "Error", ""), func(p *corev1.Pod) { p.Spec.Containers[0].StartupProbe = p.Spec.Containers[0].LivenessProbe })},
			Complaints: complaint("Unhealthy", "Startup probe failed: dial tcp: connection refused"),
		}, StartupProbeFailed, "container main was ended: its startup probe (GET :system/live) failed for too long"},
		"a crash is not the fault of a probe that failed before": {snapshot.Evidence{
			Pods:       []corev1.Pod{pod(ended(1, "Error", "boom"))},
			Complaints: complaint("Unhealthy", "Liveness probe failed: connection refused"),
		}, ContainerCrashed, "container main exited with code 1: boom"},
		"readiness": {snapshot.Evidence{
			Pods:       []corev1.Pod{pod(runs)},
			Complaints: complaint("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"),
		}, ReadinessProbeFailed, "container main runs, but its readiness probe (GET :9090/health) fails"},
		"a start that takes time": {of(pod(runs, func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe = p.Spec.Containers[0].LivenessProbe
			p.Status.ContainerStatuses[0].Started = new(false)
		})), Starting, "container main is starting: its startup probe (GET :system/live) has not succeeded yet"},

		"what keeps a pod from being made hides what ails another": {snapshot.Evidence{
			Pods:    []corev1.Pod{pod(ended(1, "Error", "boom"))},
			Refused: []snapshot.Refusal{{Message: `pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`}},
		}, QuotaExceeded, "ResourceQuota q leaves no room: asked for pods=1, used pods=1 of pods=1"},
		"of pods alike the first by name":                    {of(pod(named("b"), ended(2, "Error", "")), pod(named("a"), ended(1, "Error", ""))), ContainerCrashed, "container main exited with code 1"},
		"an older template does not count":                   {of(pod(named("a"), labelled("pod-template-hash", "1"), made(1), ended(1, "Error", "")), pod(named("b"), labelled("pod-template-hash", "2"), made(2), waits("ErrImagePull", pull))), ImageNotFound, "image example.com/engine:1 does not exist in its registry"},
		"of templates that got pods in one second all count": {of(pod(named("a"), labelled("pod-template-hash", "1"), made(2), runs, conditioned(corev1.PodReady, corev1.ConditionTrue, "")), pod(named("b"), labelled("pod-template-hash", "2"), made(2), waits("ErrImagePull", pull))), ImageNotFound, "image example.com/engine:1 does not exist in its registry"},
		"nor does a pod that is to end":                      {of(pod(named("a"), ended(1, "Error", ""), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Unix(1, 0)) }), pod(named("b"), waits("ContainerCreating", ""))), Starting, "its containers are being created"},
		"an eviction while the next pod starts":              {of(pod(named("a"), func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"} }), pod(named("b"), waits("ContainerCreating", ""))), Evicted, "its node evicted the pod: no reason given"},
		"but not when the next pod cannot start":             {of(pod(named("a"), func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"} }), pod(named("b"), waits("ErrImagePull", pull))), ImageNotFound, "image example.com/engine:1 does not exist in its registry"},
		"pods that are ready give nothing to say":            {of(pod(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue })), "", ""},
		"no pods, nothing refused":                           {of(), "", ""},
	}
	met := map[Reason]bool{}
	for rule, c := range cases {
		met[c.reason] = true
		t.Run(rule, func(t *testing.T) {
			got, found := First(c.seen)
			if found != (c.reason != "") {
				t.Fatalf("found %v: %+v", found, got)
			}
			if diff := cmp.Diff([]string{string(c.reason), strings.TrimSpace(c.message)}, []string{string(got.Reason), strings.TrimSpace(got.Message)}); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, r := range Reasons() {
		if !met[r] {
			t.Errorf("no case for %s", r)
		}
		if r.Advice() == "" {
			t.Errorf("no advice for %s", r)
		}
	}
	if !slices.Contains(Reasons(), Starting) {
		t.Error("Starting is no reason")
	}
}

// A crashing container goes round in a circle; what is said of it stands still.
func TestTheCircleOfACrashIsOneStateOfAffairs(t *testing.T) {
	crash := ended(1, "Error", "boom")
	round := []corev1.Pod{
		pod(crash),
		pod(crash, runs),
		pod(crash, waits("CrashLoopBackOff", "back-off 5m0s restarting failed container=main")),
		pod(crash, func(p *corev1.Pod) {
			s := &p.Status.ContainerStatuses[0]
			s.State, s.RestartCount = s.LastTerminationState, 17
			s.State.Terminated.FinishedAt = metav1.NewTime(time.Unix(9, 0))
		}),
	}
	first, _ := First(of(round[0]))
	for i, p := range round {
		if got, _ := First(of(p)); got != first {
			t.Errorf("at %d: %+v, before %+v", i, got, first)
		}
	}
}

func TestLastLine(t *testing.T) {
	cases := map[string]string{
		"":                                       "",
		"one\ntwo\n\n":                           "two",
		"2026-11-15T10:00:01.5Z boom":            "boom",
		"[2026-11-15 10:00:01] boom":             "boom",
		"E1115 10:00:01.000000  12 m.go:3] boom": "boom",
		"(EngineCore_0 pid=12) ERROR 11-15 10:00:01 boom": "boom",
		"\x1b[31merror:\x1b[0m boom":                      "error: boom",
		strings.Repeat("x", 2*longest):                    strings.Repeat("x", longest-1) + "…",
	}
	for text, want := range cases {
		if got := LastLine(text); got != want {
			t.Errorf("of %q: %q, want %q", text, got, want)
		}
	}
}

func TestEveryReasonIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Reasons() {
		if !strings.Contains(string(guide), "`"+string(r)+"`") {
			t.Errorf("the guide does not know %s", r)
		}
	}
}

func TestNoRoomIsKnownByItsWords(t *testing.T) {
	for _, x := range []struct {
		rule     string
		evidence snapshot.Evidence
		want     bool
	}{
		{"no node has enough", of(pod(unscheduled(full))), true},
		{"it is not scheduled yet", of(pod(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = "", nil })), false},
		{"there is no node at all", of(pod(unscheduled("no nodes available to schedule pods"))), true},
		{"Volcano says so", of(pod(unscheduled("0/3 nodes are unavailable: 3 Insufficient nvidia.com/gpu."))), true},
		{"KAI says so", of(pod(unscheduled("No nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs."))), true},
		{"it waits for something else", of(pod(unscheduled("pod group is not ready, 1 Pending, 2 minAvailable"))), false},
	} {
		if first, found := First(x.evidence); !found || NoRoom("0 of 1 replicas available: "+first.Message) != x.want {
			t.Errorf("%s: %+v", x.rule, first)
		}
	}
}
