package requestplan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

const ours = "dynamo-profiler:dev"

var (
	policy = Policy{Image: ours, Deadline: time.Hour, Scope: validation.Scope{ClusterWide: true}}
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

const graphYAML = `apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: vllm-disagg, annotations: {kept: "yes"}}
spec:
  services:
    Planner:
      extraPodSpec:
        volumes: [{name: data, configMap: {name: planner-profile-data}}]
        mainContainer: {image: x}
`

const dataYAML = `apiVersion: v1
kind: ConfigMap
metadata: {name: planner-profile-data}
data: {prefill_raw_data.json: "{}"}
`

// asked is a request as a user wrote it, changed by change.
func asked(change func(*v1alpha1.DynamoGraphDeploymentRequest)) *v1alpha1.DynamoGraphDeploymentRequest {
	r := &v1alpha1.DynamoGraphDeploymentRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "goal", Namespace: "team", UID: "u1", Generation: 1},
		Spec: v1alpha1.DynamoGraphDeploymentRequestSpec{
			Model: "m", Backend: "vllm", AutoApply: true,
			ProfilingConfig: v1alpha1.ProfilingConfig{
				ProfilerImage: ours,
				Config:        &runtime.RawExtension{Raw: []byte(`{"sla":{"ttft":200}}`)},
			},
		},
	}
	if change != nil {
		change(r)
	}
	return r
}

// at puts a request into a state.
func at(state v1alpha1.RequestState, more ...func(*v1alpha1.DynamoGraphDeploymentRequest)) *v1alpha1.DynamoGraphDeploymentRequest {
	return asked(func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		r.Status.State, r.Status.ObservedGeneration = state, 1
		for _, change := range more {
			change(r)
		}
	})
}

func found(r *v1alpha1.DynamoGraphDeploymentRequest) {
	r.Status.GeneratedDeployment = &runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoGraphDeployment","metadata":{"name":"goal","namespace":"team","labels":{"dgdr.nvidia.com/name":"goal","dgdr.nvidia.com/namespace":"team"}},"spec":{"backendFramework":"vllm"}}`)}
	r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSpecGenerated, Status: metav1.ConditionTrue}}
}

// left is a graph of the request's name that a request of some uid has made.
func left(by string, framework v1alpha1.BackendFramework) *v1alpha1.DynamoGraphDeployment {
	dgd := ofGraph("successful")
	dgd.Annotations = map[string]string{v1alpha1.AnnotationRequestUID: by}
	dgd.Spec.BackendFramework = framework
	return dgd
}

// unmarked is one that an operator made which marks none.
func unmarked(framework v1alpha1.BackendFramework) *v1alpha1.DynamoGraphDeployment {
	dgd := left("", framework)
	dgd.Annotations = nil
	return dgd
}

// noted is a request whose status names a graph, as the original's does before it
// is up.
func noted(r *v1alpha1.DynamoGraphDeploymentRequest) {
	r.Status.Deployment = &v1alpha1.RequestedDeployment{Name: "goal"}
}

func made(r *v1alpha1.DynamoGraphDeploymentRequest) {
	found(r)
	r.Status.Deployment = &v1alpha1.RequestedDeployment{Name: "goal", Namespace: "team", Created: true, State: v1alpha1.GraphStatePending}
}

func record() *Record { return &Record{Attempt: "1", Spec: asked(nil).Spec} }

func job(change func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "profile-goal", UID: "j1"},
		Spec:       batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(3600)), BackoffLimit: new(int32(3))},
		Status:     batchv1.JobStatus{StartTime: &metav1.Time{Time: noon.Add(-time.Minute)}, Ready: new(int32(1))},
	}
	if change != nil {
		change(j)
	}
	return j
}

func ended(kind batchv1.JobConditionType, reason string) *batchv1.Job {
	return job(func(j *batchv1.Job) {
		j.Status.Ready = nil
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "job says so"}}
	})
}

func dead(change func(*corev1.Pod)) []corev1.Pod {
	p := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	change(&p)
	return []corev1.Pod{p}
}

func terminated(name string, code int32, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}}
}

// profiled is what was seen after a profiler left its output, with the pod that
// proves it.
func profiled(s Sight) Sight {
	receipt := profileoutput.Receipt{}
	receipt.Add("dgdr-output-goal", s.Output)
	if s.ProfileData != nil {
		receipt.Add(s.ProfileData.Name, s.ProfileData.Data)
	}
	s.Job = ended(batchv1.JobComplete, "")
	s.Pods = append(s.Pods, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: s.Job.Name, UID: s.Job.UID, Controller: new(true)}}},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{
			terminated(ProfilerContainer, 0, receipt.Text()),
		}},
	})
	return s
}

func ofGraph(state v1alpha1.GraphState) *v1alpha1.DynamoGraphDeployment {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "goal", Namespace: "team", Labels: map[string]string{
		v1alpha1.LabelRequestName: "goal", v1alpha1.LabelRequestNamespace: "team",
	}}}
	dgd.Status.State = state
	dgd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: "decode: 0 of 1"}}
	return dgd
}

// told is a step in short: state, wants and conditions.
func told(s Step) string {
	names := []string{"", " wants inputs", " wants job", " wants extras", " wants graph"}
	lines := []string{string(s.State) + names[s.Wants]}
	for _, f := range s.Findings {
		state := "False"
		if f.OK {
			state = "True"
		}
		lines = append(lines, strings.TrimSpace(strings.Join([]string{f.Type, state, f.Reason, f.Message}, " ")))
	}
	return strings.Join(lines, "\n")
}

func TestNext(t *testing.T) {
	const valid = "Validation True ValidationPassed"
	succeeded := profileoutput.Result{
		State: profileoutput.Succeeded, Reason: profileoutput.ReasonTargetsMissed, GeneratedDeployment: graphYAML, Chosen: "TP2 x 1",
		Targets: []profileoutput.Target{{Name: "ttft", Unit: " ms", Want: 50, Got: 75}}, Remedy: "8 GPUs would do",
	}
	for name, test := range map[string]struct {
		request *v1alpha1.DynamoGraphDeploymentRequest
		seen    Sight
		want    string
	}{
		"a new request is accepted and written down": {asked(nil), Sight{}, "Pending wants inputs\n" + valid},
		"a request that breaks a rule fails": {
			asked(func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.ProfilingConfig.ProfilerImage = "" }), Sight{},
			"Failed\nValidation False ValidationFailed spec.profilingConfig.profilerImage: Required value",
		},
		"what a request refers to is waited for": {
			asked(nil), Sight{Absent: []string{"ConfigMap b", "ConfigMap a"}},
			"Pending\nValidation False InputNotFound waiting for ConfigMap a, ConfigMap b",
		},
		"hardware that no node tells of is waited for": {
			asked(func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.EnableGPUDiscovery = true }), Sight{},
			"Pending\nValidation False HardwareNotFound no node has GPUs and the labels that GPU feature discovery writes; " +
				"describe the hardware in profilingConfig.config.hardware, or wait for nodes",
		},
		"what is written down is profiled":        {at("Pending"), Sight{Record: record()}, "Pending wants job\n" + valid},
		"a Job that was deleted is made again":    {at("Profiling"), Sight{Record: record()}, "Profiling wants job\n" + valid},
		"what another operator began is begun":    {at("Profiling"), Sight{Job: job(nil)}, "Profiling wants inputs\n" + valid},
		"no Job runs before its inputs are there": {at("Pending"), Sight{Record: record(), Drifted: true}, "Pending wants inputs\n" + valid},
		"inputs that somebody changes are restored": {
			at("Profiling"), Sight{Record: record(), Drifted: true, Job: job(nil)}, "Profiling wants inputs\n" + valid + "\nProfiling False ProfilingRunning the profiler is running",
		},
		"a Job that starts is said to":          {at("Pending"), Sight{Record: record(), Job: job(func(j *batchv1.Job) { j.Status.Ready = nil })}, "Profiling\n" + valid + "\nProfiling False ProfilingRunning the profiler is starting"},
		"progress is told as the profiler does": {at("Profiling"), Sight{Record: record(), Job: job(nil), Output: map[string]string{profileoutput.KeyProgress: `{"done":3,"total":8}`}}, "Profiling\n" + valid + "\nProfiling False ProfilingRunning 3/8 candidates"},
		"a pod that is not placed is told": {
			at("Profiling"), Sight{Record: record(), Job: job(nil), Pods: []corev1.Pod{{Status: corev1.PodStatus{
				Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"}},
			}}}},
			"Profiling\n" + valid + "\nProfiling False ProfilerWaiting the profiler's pod is not placed: no room",
		},
		"an edit while profiling changes nothing": {
			at("Profiling", func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Generation, r.Spec.Model = 2, "other" }),
			Sight{Record: record(), Job: job(nil)},
			"Profiling\nValidation False SpecChangeRejected the spec was changed after profiling began and the change has no effect; " +
				"change it back, or make another request\nProfiling False ProfilingRunning the profiler is running",
		},
		"an edit that is undone is forgiven": {
			at("Profiling", func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Generation = 3 }), Sight{Record: record(), Job: job(nil)},
			"Profiling\n" + valid + "\nProfiling False ProfilingRunning the profiler is running",
		},

		"a profiler that fails with a word is quoted": {
			at("Profiling"), Sight{
				Record: record(), Job: ended(batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy),
				Output: map[string]string{profileoutput.KeyResult: profileoutput.Result{State: profileoutput.Failed, Reason: profileoutput.ReasonNoConfiguration, Message: "needs 5 GPUs, has 4"}.Text()},
			},
			"Failed\n" + valid + "\nProfiling False NoFeasibleConfiguration needs 5 GPUs, has 4",
		},
		"its word on the termination log will do": {
			at("Profiling"), Sight{Record: record(), Job: ended(batchv1.JobFailed, "BackoffLimitExceeded"), Pods: dead(func(p *corev1.Pod) {
				text := profileoutput.Result{State: profileoutput.Failed, Reason: profileoutput.ReasonUnknownGPU, Message: "no such GPU"}.Text()
				p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("profiler", 3, text)}
			})},
			"Failed\n" + valid + "\nProfiling False UnknownGPU no such GPU",
		},
		"a profiler that crashes says its last words": {
			at("Profiling"), Sight{Record: record(), Job: ended(batchv1.JobFailed, "BackoffLimitExceeded"), Pods: dead(func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{
					terminated("output-copier", 1, "the profiler failed"), terminated("profiler", 2, "a\nb\nc\npanic: oh\n"),
				}
			})},
			"Failed\n" + valid + "\nProfiling False ProfilerCrashed container profiler ended with exit code 2: b | c | panic: oh",
		},
		"a profiler that was killed for memory says how to help": {
			at("Profiling"), Sight{Record: record(), Job: ended(batchv1.JobFailed, "BackoffLimitExceeded"), Pods: dead(func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("profiler", 137, "")}
				p.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
			})},
			"Failed\n" + valid + "\nProfiling False ProfilerOutOfMemory the profiler was killed for want of memory; give it more in spec.profilingConfig.resources",
		},
		"a profiler that is evicted is said to be": {
			at("Profiling"), Sight{Record: record(), Job: ended(batchv1.JobFailed, "BackoffLimitExceeded"), Pods: dead(func(p *corev1.Pod) {
				p.Status.Reason, p.Status.Message = "Evicted", "the node was low on memory"
			})},
			"Failed\n" + valid + "\nProfiling False ProfilerEvicted the profiler's pod was evicted: the node was low on memory",
		},
		"a profiler that hangs is ended by its deadline": {
			at("Profiling"), Sight{
				Record: record(), Job: ended(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded),
				Output: map[string]string{profileoutput.KeyProgress: `{"done":3,"total":8,"best":"TP2"}`},
			},
			"Failed\n" + valid + "\nProfiling False DeadlineExceeded the profiler did not finish within 1h0m0s; it got as far as 3/8 candidates, best so far TP2",
		},
		"a Job that outlives its deadline is given up": {
			at("Profiling"), Sight{Record: record(), Job: job(func(j *batchv1.Job) { j.Status.StartTime = &metav1.Time{Time: noon.Add(-2 * time.Hour)} })},
			"Failed\n" + valid + "\nProfiling False DeadlineExceeded the profiler did not finish within 1h0m0s",
		},
		"an attempt that failed is told while the next one runs": {
			at("Profiling"), Sight{Record: record(), Job: job(func(j *batchv1.Job) { j.Status.Failed = 1 }), Pods: dead(func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{terminated("profiler", 2, "")}
			})},
			"Profiling\n" + valid + "\nProfiling False ProfilingRunning attempt 2 of 4 (the last one: container profiler ended with exit code 2): the profiler is running",
		},

		"a result with a graph is taken, and what it misses told": {
			at("Profiling"), profiled(Sight{Record: record(), Output: map[string]string{profileoutput.KeyResult: succeeded.Text()}}),
			"Deploying wants extras\n" + valid + "\nProfiling True ProfilingCompleted\nSpecGenerated True SpecGenerated TP2 x 1\n" +
				"TargetsMet False TargetsMissed ttft 75 ms of 50 ms, missed by 50%; 8 GPUs would do",
		},
		"without autoApply a graph that was found is all there is": {
			at("Profiling"), profiled(Sight{
				Record: &Record{Attempt: "1", Spec: asked(func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.AutoApply = false }).Spec},
				Output: map[string]string{profileoutput.KeyGraph: dataYAML + "---\n" + graphYAML},
			}),
			"Ready wants extras\nValidation False SpecChangeRejected the spec was changed after profiling began and the change has no effect; " +
				"change it back, or make another request\nProfiling True ProfilingCompleted\nSpecGenerated True SpecGenerated",
		},
		"a Job that leaves nothing has failed": {
			at("Profiling"), profiled(Sight{Record: record(), Output: map[string]string{profileoutput.KeyMockerGraph: graphYAML}}),
			"Failed\n" + valid + "\nSpecGenerated False GenerationFailed the profiler left no config_with_planner.yaml",
		},
		"files without a graph are no result": {
			at("Profiling"), profiled(Sight{Record: record(), Output: map[string]string{profileoutput.KeyGraph: dataYAML}}),
			"Failed\n" + valid + "\nSpecGenerated False GenerationFailed read config_with_planner.yaml: there is no DynamoGraphDeployment in it",
		},

		"a graph that breaks a rule is no result": {
			at("Profiling"), profiled(Sight{Record: record(), Output: map[string]string{profileoutput.KeyGraph: "kind: DynamoGraphDeployment"}}),
			"Failed\n" + valid + "\nSpecGenerated False GenerationFailed spec.services: Required value: a graph has at least one service",
		},

		"the graph that was found is made": {at("Deploying", found), Sight{Record: record()}, "Deploying wants graph\n" + valid},
		"a graph that it made before it could say so is its own": {
			at("Deploying", found), Sight{Record: record(), Graph: left("u1", "sglang")}, "Deploying wants graph\n" + valid,
		},
		"a graph that an earlier request of the name left is not taken for it": {
			at("Deploying", found), Sight{Record: record(), Graph: left("u0", "sglang")},
			"Deploying\n" + valid + "\nDeploymentReady False DeploymentNameTaken graph team/goal was made for an earlier request of this name, and is not what this one found; " +
				"delete it, or ask for another name",
		},
		"one that is what was found is": {
			at("Deploying", found), Sight{Record: record(), Graph: left("u0", "vllm")}, "Deploying wants graph\n" + valid,
		},
		"one without a mark is that of the operator that made it for this request": {
			at("Deploying", found, noted), Sight{Graph: unmarked("sglang")}, "Deploying wants graph\n" + valid,
		},
		"one with the mark of another request is not": {
			at("Deploying", found, noted), Sight{Graph: left("u0", "sglang")},
			"Deploying\n" + valid + "\nDeploymentReady False DeploymentNameTaken graph team/goal was made for an earlier request of this name, and is not what this one found; " +
				"delete it, or ask for another name",
		},
		"nor one without a mark that no operator tells of": {
			at("Deploying", found), Sight{Graph: unmarked("sglang")},
			"Deploying\n" + valid + "\nDeploymentReady False DeploymentNameTaken graph team/goal was made for an earlier request of this name, and is not what this one found; " +
				"delete it, or ask for another name",
		},
		"nor where this one was accepted anew": {
			at("Deploying", found, noted, func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Status.Accepted = record().Accepted(1) }),
			Sight{Record: record(), Graph: unmarked("sglang")},
			"Deploying\n" + valid + "\nDeploymentReady False DeploymentNameTaken graph team/goal was made for an earlier request of this name, and is not what this one found; " +
				"delete it, or ask for another name",
		},
		"a graph that comes up is waited for": {at("Deploying", made), Sight{Record: record(), Graph: ofGraph("pending")}, "Deploying\n" + valid + "\nDeploymentReady False DeploymentCreated decode: 0 of 1"},
		"a graph that is up makes the request ready": {
			at("Deploying", made), Sight{Record: record(), Graph: ofGraph("successful")}, "Ready\n" + valid + "\nDeploymentReady True DeploymentReady",
		},
		"a graph that goes down takes the request with it": {
			at("Ready", made, func(r *v1alpha1.DynamoGraphDeploymentRequest) {
				r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDeploymentReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeploymentReady})
			}),
			Sight{Record: record(), Graph: ofGraph("pending")}, "Deploying\n" + valid + "\nDeploymentReady False DeploymentDegraded decode: 0 of 1",
		},
		"a graph that was deleted is told, not made again": {
			at("Ready", made), Sight{Record: record()},
			"DeploymentDeleted\n" + valid + "\nDeploymentReady False DeploymentDeleted graph team/goal was deleted and is not made again; make another request for another one",
		},
		"somebody else's graph of that name is not the request's": {
			at("Ready", made), Sight{Record: record(), Graph: &v1alpha1.DynamoGraphDeployment{}},
			"DeploymentDeleted\n" + valid + "\nDeploymentReady False DeploymentDeleted graph team/goal was deleted and is not made again; make another request for another one",
		},
		"a deleted graph stays deleted": {at("DeploymentDeleted", made), Sight{Record: record(), Graph: ofGraph("successful")}, "DeploymentDeleted\n" + valid},

		"what has failed stays so":                  {at("Failed"), Sight{Record: record(), Job: job(nil)}, "Failed"},
		"an edit of what has failed begins it anew": {at("Failed", func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Generation = 2 }), Sight{Record: record()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, told(Next(test.request, test.seen, policy, noon))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAfter(t *testing.T) {
	wants := func(w Wants) Step {
		return Step{State: "Deploying", Wants: w, Generated: &Generated{Graph: ofGraph("")}}
	}
	for name, test := range map[string]struct {
		step  Step
		err   error
		want  string
		again bool
	}{
		"a graph that was made is written down": {wants(Graph), nil, "Deploying wants graph\nDeploymentReady False DeploymentCreated the graph was created", false},
		"a name that is taken is told and tried again": {
			wants(Graph), fault.New(fault.Conflict, v1alpha1.ReasonNameConflict, "taken"), "Deploying wants graph\nDeploymentReady False DeploymentNameTaken taken", true,
		},
		"a graph that nobody takes ends it":            {wants(Graph), fault.New(fault.Invalid, "X", "bad"), "Failed\nDeploymentReady False DeploymentRefused bad", false},
		"a Job that nobody takes ends it":              {wants(Job), fault.New(fault.Invalid, "X", "bad"), "Failed\nProfiling False JobCreationFailed bad", false},
		"a Job that cannot be made now is tried again": {wants(Job), errTimeout{}, "Deploying wants job\nProfiling False JobCreationFailed timeout", true},
		"a ConfigMap that is refused is tried again":   {wants(Extras), fault.New(fault.Invalid, v1alpha1.ReasonRejected, "no"), " wants extras\nSpecGenerated False Rejected no", true},
	} {
		t.Run(name, func(t *testing.T) {
			step, err := After(asked(nil), test.step, test.err)
			if diff := cmp.Diff(test.want, told(step)); diff != "" {
				t.Error(diff)
			}
			if again := fault.Retry(err); again != test.again {
				t.Errorf("tried again: %v (%v), want %v", again, err, test.again)
			}
		})
	}
}

type errTimeout struct{}

func (errTimeout) Error() string { return "timeout" }

func TestSpecsAreComparedByWhatTheySay(t *testing.T) {
	a, b := asked(nil).Spec, asked(nil).Spec
	b.ProfilingConfig.Config = &runtime.RawExtension{Raw: []byte(`{ "sla" : {"ttft": 200.0} }`)}
	if !Equal(a, b) {
		t.Error("spaces and zeros make a difference")
	}
	r := asked(nil)
	r.Status.Accepted = Record{Spec: a, Config: "c"}.Accepted(7)
	read, err := Recorded(r)
	if err != nil {
		t.Fatal(err)
	}
	if !Equal(a, read.Spec) || read.Attempt != "7" || read.Config != "c" {
		t.Errorf("a record is read back as another: %+v", read)
	}
	b.ProfilingConfig.Config = &runtime.RawExtension{Raw: []byte(`{"sla":{"ttft":201}}`)}
	if Equal(a, b) {
		t.Error("another target makes none")
	}
}
