package conversion

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// profiler is the container of the profiling job that resources are for.
const profiler = "profiler"

// GuardOverrides keeps the account of the profiling job, and the generated graph,
// out of payloads.
const GuardOverrides guard.Guard = "payload-overrides"

// DefaultProfiler stands in v1alpha1, which wants one, for the image that a request
// of v1beta1 leaves out: the operator's own profiler, wherever an installation has
// it.
const DefaultProfiler = version.Profiler

// Fields that the source did not have although the target says something for them.
const (
	absentImage         = "image"
	absentProfilerImage = "profilerImage"
)

// RequestToBeta turns a request into v1beta1.
func RequestToBeta(in *v1alpha1.DynamoGraphDeploymentRequest) (*v1beta1.DynamoGraphDeploymentRequest, []string) {
	return requestToBeta(in.DeepCopy())
}

func requestToBeta(in *v1alpha1.DynamoGraphDeploymentRequest) (*v1beta1.DynamoGraphDeploymentRequest, []string) {
	var ignored []string
	written := WrittenAs(in)
	payload, present, readable := take[v1beta1.DynamoGraphDeploymentRequestSpec](&in.ObjectMeta, v1alpha1.AnnotationRequestPayload)
	if present && !readable {
		ignored = append(ignored, "payload")
	}
	if payload.Spec.Overrides != nil {
		// They stand in the spec; a payload has no say in them.
		ignored = append(ignored, "overrides")
	}
	out := &v1beta1.DynamoGraphDeploymentRequest{ObjectMeta: in.ObjectMeta, Spec: upRequest(&in.Spec), Status: upRequestStatus(&in.Status)}
	out.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeploymentRequest))
	restoreBetaRequest(&out.Spec, &payload.Spec)
	if out.Spec.Image == DefaultProfiler && slices.Contains(payload.Absent, absentImage) {
		out.Spec.Image = ""
	}
	if GuardOverrides.Off() && payload.Spec.Overrides != nil {
		out.Spec.Overrides = payload.Spec.Overrides
	}

	back := envelope[v1alpha1.DynamoGraphDeploymentRequestSpec]{}
	home := downRequest(&out.Spec)
	special := rememberRequest(&back.Spec, &in.Spec, &home)
	if in.Spec.ProfilingConfig.ProfilerImage == "" {
		back.Absent, special = []string{absentProfilerImage}, true
	}
	if written == Alpha || special {
		put(&out.ObjectMeta, v1alpha1.AnnotationRequestPayload, back)
		annotate(&out.ObjectMeta, v1alpha1.AnnotationWrittenAs, written)
	}
	return out, ignored
}

// RequestToAlpha turns a request into v1alpha1.
func RequestToAlpha(in *v1beta1.DynamoGraphDeploymentRequest) (*v1alpha1.DynamoGraphDeploymentRequest, []string) {
	return requestToAlpha(in.DeepCopy())
}

func requestToAlpha(in *v1beta1.DynamoGraphDeploymentRequest) (*v1alpha1.DynamoGraphDeploymentRequest, []string) {
	var ignored []string
	word := in.Annotations[v1alpha1.AnnotationWrittenAs]
	payload, present, readable := take[v1alpha1.DynamoGraphDeploymentRequestSpec](&in.ObjectMeta, v1alpha1.AnnotationRequestPayload)
	if present && !readable {
		ignored = append(ignored, "payload")
	}
	out := &v1alpha1.DynamoGraphDeploymentRequest{ObjectMeta: in.ObjectMeta, Spec: downRequest(&in.Spec), Status: downRequestStatus(&in.Status)}
	out.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeploymentRequest))
	restoreAlphaRequest(&out.Spec, &payload.Spec)
	if in.Spec.Image == "" && slices.Contains(payload.Absent, absentProfilerImage) {
		out.Spec.ProfilingConfig.ProfilerImage = ""
	}

	back := envelope[v1beta1.DynamoGraphDeploymentRequestSpec]{}
	special := rememberBetaRequest(&back.Spec, &in.Spec, upRequest(&out.Spec))
	if in.Spec.Image == "" && out.Spec.ProfilingConfig.ProfilerImage != "" {
		back.Absent, special = []string{absentImage}, true
	}
	if special {
		put(&out.ObjectMeta, v1alpha1.AnnotationRequestPayload, back)
	}
	if origin(word, present, beyondAlpha(&in.Spec)) == Beta {
		annotate(&out.ObjectMeta, v1alpha1.AnnotationWrittenAs, Beta)
	}
	return out, ignored
}

// upRequest is a request as v1beta1, without what only v1alpha1 can say.
func upRequest(in *v1alpha1.DynamoGraphDeploymentRequestSpec) v1beta1.DynamoGraphDeploymentRequestSpec {
	out := v1beta1.DynamoGraphDeploymentRequestSpec{
		Model:                  in.Model,
		Backend:                string(in.Backend),
		Image:                  in.ProfilingConfig.ProfilerImage,
		RuntimeVersionOverride: in.RuntimeVersionOverride,
		AutoApply:              &in.AutoApply,
	}
	targets := readConfig(in.ProfilingConfig.Config)
	out.SLA, out.Workload, out.ModelCache = targets.SLA, targets.Workload, targets.ModelCache
	if in.UseMocker || targets.Planner != nil {
		out.Features = &v1beta1.Features{Planner: targets.Planner}
		if in.UseMocker {
			out.Features.Mocker = &v1beta1.Mocker{Enabled: true}
		}
	}
	if o := in.Overrides; o != nil {
		out.Overrides = &v1beta1.Overrides{ProfilingJob: o.ProfilingJob, DGD: o.DGD}
	}
	if job := upJob(&in.ProfilingConfig, in.Overrides); job != nil {
		if out.Overrides == nil {
			out.Overrides = &v1beta1.Overrides{}
		}
		out.Overrides.ProfilingJob = job
	}
	return out
}

// upJob puts what v1alpha1 has own fields for over the job of the overrides; nil
// if there is nothing.
func upJob(config *v1alpha1.ProfilingConfig, overrides *v1alpha1.RequestOverrides) *batchv1.JobSpec {
	var job batchv1.JobSpec
	if overrides != nil && overrides.ProfilingJob != nil {
		job = *overrides.ProfilingJob
	}
	pod := &job.Template.Spec
	special := false
	if len(config.Tolerations) > 0 {
		pod.Tolerations, special = config.Tolerations, true
	}
	if len(config.NodeSelector) > 0 {
		pod.NodeSelector, special = config.NodeSelector, true
	}
	if config.Resources != nil && !same(*config.Resources, corev1.ResourceRequirements{}) {
		special = true
		pod.Containers = slices.Clone(pod.Containers)
		at := profilerIndex(pod.Containers)
		if at < 0 {
			at = len(pod.Containers)
			pod.Containers = append(pod.Containers, corev1.Container{Name: profiler})
		}
		pod.Containers[at].Resources = *config.Resources
	}
	if !special {
		return nil
	}
	return &job
}

func profilerIndex(containers []corev1.Container) int {
	return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == profiler })
}

// downRequest is a request as v1alpha1, without what only v1beta1 can say.
func downRequest(in *v1beta1.DynamoGraphDeploymentRequestSpec) v1alpha1.DynamoGraphDeploymentRequestSpec {
	out := v1alpha1.DynamoGraphDeploymentRequestSpec{
		Model:                  in.Model,
		Backend:                v1alpha1.BackendFramework(in.Backend),
		RuntimeVersionOverride: in.RuntimeVersionOverride,
		AutoApply:              in.AutoApply == nil || *in.AutoApply,
		ProfilingConfig:        v1alpha1.ProfilingConfig{ProfilerImage: cmp.Or(in.Image, DefaultProfiler)},
	}
	t := targets{SLA: in.SLA, Workload: in.Workload, ModelCache: in.ModelCache}
	if in.Features != nil {
		t.Planner = in.Features.Planner
		out.UseMocker = in.Features.Mocker != nil && in.Features.Mocker.Enabled
	}
	out.ProfilingConfig.Config = t.write(nil)
	if o := in.Overrides; o != nil {
		out.Overrides = &v1alpha1.RequestOverrides{ProfilingJob: downJob(o.ProfilingJob, &out.ProfilingConfig), DGD: o.DGD}
		if o.ProfilingJob != nil && out.Overrides.ProfilingJob == nil && o.DGD == nil {
			out.Overrides = nil
		}
	}
	return out
}

// downJob moves what v1alpha1 has own fields for out of a job; nil if that was
// all of it.
func downJob(in *batchv1.JobSpec, config *v1alpha1.ProfilingConfig) *batchv1.JobSpec {
	if in == nil {
		return nil
	}
	job := *in
	pod := &job.Template.Spec
	moved := false
	if len(pod.Tolerations) > 0 {
		config.Tolerations, pod.Tolerations, moved = pod.Tolerations, nil, true
	}
	if len(pod.NodeSelector) > 0 {
		config.NodeSelector, pod.NodeSelector, moved = pod.NodeSelector, nil, true
	}
	if at := profilerIndex(pod.Containers); at >= 0 && !same(pod.Containers[at].Resources, corev1.ResourceRequirements{}) {
		moved = true
		pod.Containers = slices.Clone(pod.Containers)
		resources := pod.Containers[at].Resources
		config.Resources = &resources
		pod.Containers[at].Resources = corev1.ResourceRequirements{}
		if len(pod.Containers) == 1 && same(pod.Containers[0], corev1.Container{Name: profiler}) {
			pod.Containers = nil // comes back with the resources
		}
	}
	if moved && same(job, batchv1.JobSpec{}) {
		return nil
	}
	return &job
}

// rememberRequest keeps what v1beta1 cannot say of a request.
func rememberRequest(payload, source, home *v1alpha1.DynamoGraphDeploymentRequestSpec) bool {
	special := source.EnableGPUDiscovery || source.DeploymentOverrides != nil
	payload.EnableGPUDiscovery, payload.DeploymentOverrides = source.EnableGPUDiscovery, source.DeploymentOverrides
	from, to := &source.ProfilingConfig, &payload.ProfilingConfig
	to.ConfigMapRef, to.OutputPVC = from.ConfigMapRef, from.OutputPVC
	special = special || from.ConfigMapRef != nil || from.OutputPVC != ""
	if !sameJSON(from.Config, home.ProfilingConfig.Config) {
		to.Config, special = from.Config, true
	}
	if from.Resources != nil && home.ProfilingConfig.Resources == nil {
		to.Resources, special = from.Resources, true // is empty
	}
	return special
}

func restoreAlphaRequest(out, payload *v1alpha1.DynamoGraphDeploymentRequestSpec) {
	out.EnableGPUDiscovery, out.DeploymentOverrides = payload.EnableGPUDiscovery, payload.DeploymentOverrides
	to, from := &out.ProfilingConfig, &payload.ProfilingConfig
	to.ConfigMapRef, to.OutputPVC = from.ConfigMapRef, from.OutputPVC
	if from.Config != nil {
		// What the object says now counts over what the payload remembers of it.
		live := readConfig(to.Config)
		if same(readConfig(from.Config), live) {
			to.Config = from.Config
		} else {
			to.Config = live.write(from.Config)
		}
	}
	if to.Resources == nil && from.Resources != nil && same(*from.Resources, corev1.ResourceRequirements{}) {
		to.Resources = from.Resources
	}
}

// rememberBetaRequest keeps what v1alpha1 cannot say of a request. Overrides are
// never among it.
func rememberBetaRequest(payload, source *v1beta1.DynamoGraphDeploymentRequestSpec, home v1beta1.DynamoGraphDeploymentRequestSpec) bool {
	special := source.Hardware != nil || source.SearchStrategy != ""
	payload.Hardware, payload.SearchStrategy = source.Hardware, source.SearchStrategy
	if w := source.Workload; w != nil && (w.Concurrency != nil || w.RequestRate != nil || home.Workload == nil) {
		payload.Workload, special = &v1beta1.Workload{Concurrency: w.Concurrency, RequestRate: w.RequestRate}, true
	}
	if s := source.SLA; s != nil && (s.E2ELatency != nil || home.SLA == nil) {
		payload.SLA, special = &v1beta1.SLA{E2ELatency: s.E2ELatency}, true
	}
	if source.ModelCache != nil && home.ModelCache == nil {
		payload.ModelCache, special = &v1beta1.ModelCache{}, true
	}
	if f := source.Features; f != nil && (home.Features == nil || f.Mocker != nil && home.Features.Mocker == nil) {
		payload.Features, special = &v1beta1.Features{}, true
		if f.Mocker != nil {
			payload.Features.Mocker = &v1beta1.Mocker{}
		}
	}
	return special
}

// beyondAlpha reports whether a request asks what v1alpha1 cannot say. A strategy
// that is the default asks nothing.
func beyondAlpha(spec *v1beta1.DynamoGraphDeploymentRequestSpec) bool {
	return spec.Hardware != nil || spec.SearchStrategy != "" && spec.SearchStrategy != v1beta1.SearchStrategyRapid ||
		spec.Workload != nil && (spec.Workload.Concurrency != nil || spec.Workload.RequestRate != nil) ||
		spec.SLA != nil && spec.SLA.E2ELatency != nil
}

// restoreBetaRequest puts back what v1alpha1 cannot say, and nothing that it can.
func restoreBetaRequest(out, payload *v1beta1.DynamoGraphDeploymentRequestSpec) {
	out.Hardware, out.SearchStrategy = payload.Hardware, payload.SearchStrategy
	if w := payload.Workload; w != nil {
		if out.Workload == nil {
			out.Workload = &v1beta1.Workload{}
		}
		out.Workload.Concurrency, out.Workload.RequestRate = w.Concurrency, w.RequestRate
	}
	if s := payload.SLA; s != nil {
		if out.SLA == nil {
			out.SLA = &v1beta1.SLA{}
		}
		out.SLA.E2ELatency = s.E2ELatency
	}
	if payload.ModelCache != nil && out.ModelCache == nil {
		out.ModelCache = &v1beta1.ModelCache{}
	}
	if f := payload.Features; f != nil {
		if out.Features == nil {
			out.Features = &v1beta1.Features{}
		}
		if f.Mocker != nil && out.Features.Mocker == nil {
			out.Features.Mocker = &v1beta1.Mocker{}
		}
	}
}

func upRequestStatus(in *v1alpha1.DynamoGraphDeploymentRequestStatus) v1beta1.DynamoGraphDeploymentRequestStatus {
	out := v1beta1.DynamoGraphDeploymentRequestStatus{
		ObservedGeneration: in.ObservedGeneration,
		Phase:              v1beta1.RequestPhase(in.State),
		ProfilingPhase:     in.ProfilingPhase,
		ProfilingJobName:   in.ProfilingJobName,
		Backend:            string(in.Backend),
		Accepted:           (*v1beta1.AcceptedRequest)(in.Accepted),
		DeploymentInfo:     (*v1beta1.DeploymentInfo)(in.DeploymentInfo),
		Conditions:         in.Conditions,
	}
	var created v1beta1.RequestedDeployment
	if d := in.Deployment; d != nil {
		out.DGDName = d.Name
		created = v1beta1.RequestedDeployment{Namespace: d.Namespace, State: string(d.State), Created: d.Created}
	}
	switch {
	case in.State == v1alpha1.RequestStateDeploymentDeleted:
		out.Phase, created.Deleted = v1beta1.RequestPhaseReady, true
	case in.State == v1alpha1.RequestStateReady && created.Created:
		out.Phase = v1beta1.RequestPhaseDeployed
	}
	if created != (v1beta1.RequestedDeployment{}) {
		out.Deployment = &created
	}
	results := v1beta1.ProfilingResults{SelectedConfig: in.GeneratedDeployment, Reference: in.ProfilingResults}
	for _, p := range in.Pareto {
		results.Pareto = append(results.Pareto, v1beta1.ParetoConfig(p))
	}
	if results.SelectedConfig != nil || results.Reference != "" || results.Pareto != nil {
		out.ProfilingResults = &results
	}
	return out
}

func downRequestStatus(in *v1beta1.DynamoGraphDeploymentRequestStatus) v1alpha1.DynamoGraphDeploymentRequestStatus {
	out := v1alpha1.DynamoGraphDeploymentRequestStatus{
		ObservedGeneration: in.ObservedGeneration,
		State:              v1alpha1.RequestState(in.Phase),
		ProfilingPhase:     in.ProfilingPhase,
		ProfilingJobName:   in.ProfilingJobName,
		Backend:            v1alpha1.BackendFramework(in.Backend),
		Accepted:           (*v1alpha1.AcceptedRequest)(in.Accepted),
		DeploymentInfo:     (*v1alpha1.DeploymentInfo)(in.DeploymentInfo),
		Conditions:         in.Conditions,
	}
	created := v1alpha1.RequestedDeployment{Name: in.DGDName}
	deleted := false
	if d := in.Deployment; d != nil {
		created.Namespace, created.State, created.Created = d.Namespace, v1alpha1.GraphState(d.State), d.Created
		deleted = d.Deleted
	}
	switch {
	case in.Phase == v1beta1.RequestPhaseDeployed:
		out.State, created.Created = v1alpha1.RequestStateReady, true
	case in.Phase == v1beta1.RequestPhaseReady && deleted:
		out.State = v1alpha1.RequestStateDeploymentDeleted
	}
	if created != (v1alpha1.RequestedDeployment{}) {
		out.Deployment = &created
	}
	if r := in.ProfilingResults; r != nil {
		out.GeneratedDeployment, out.ProfilingResults = r.SelectedConfig, r.Reference
		for _, p := range r.Pareto {
			out.Pareto = append(out.Pareto, v1alpha1.ParetoConfig(p))
		}
	}
	return out
}
