package render

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Volumes of a profiler.
const (
	volumeInput  = "profiling-input"
	volumeOutput = "profiling-output"
	volumeBase   = "profiling-config"
	volumeCache  = "model-cache"
)

// directProfiler runs the profiler of ours: it reads a file, which has to be the
// one that was accepted, and writes its result itself. An exit status tells
// whether trying again can help.
func directProfiler(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, p Profiling, job *batchv1.Job) {
	profiler := corev1.Container{
		Name: requestplan.ProfilerContainer, Image: p.Image,
		Args: []string{
			"run", "--config", requestplan.InputPath, "--config-sha256", profileoutput.Sum(step.Record.Config), "--request", r.Name, "--namespace", r.Namespace,
			"--result", graph.ProfilingOutput(r.Name), "--output", requestplan.OutputPath,
			"--termination-log", corev1.TerminationMessagePathDefault,
		},
		Env:                      []corev1.EnvVar{hubToken()},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          confined(),
	}
	if step.Record.Spec.ProfilingConfig.ConfigMapRef != nil {
		profiler.Args = append(profiler.Args, "--base", requestplan.BasePath)
	}
	job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: new(profiler.Name),
			Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
			Values:        []int32{profileoutput.ExitPermanent},
		},
	}}}
	spec := &job.Spec.Template.Spec
	spec.Volumes = []corev1.Volume{{Name: volumeInput, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: graph.ProfilingInput(r.Name)},
		Items:                []corev1.KeyToPath{{Key: requestplan.KeyConfig, Path: requestplan.KeyConfig}},
	}}}}
	profiler.VolumeMounts = []corev1.VolumeMount{{Name: volumeInput, MountPath: requestplan.InputFolder, ReadOnly: true}}
	mountFiles(step, spec, &profiler)
	spec.Containers = []corev1.Container{profiler}
}

// profilerOfSeed is the contract of releases before 1.0.
func profilerOfSeed(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, p Profiling) corev1.Container {
	return corev1.Container{
		Name: requestplan.ProfilerContainer, Image: step.Record.Image(),
		Command: []string{"python", "-m", "benchmarks.profiler.profile_sla"},
		Args:    []string{"--profile-config", step.Record.Config},
		Env: []corev1.EnvVar{
			hubToken(),
			{Name: "NATS_SERVER", Value: cmp.Or(p.NATS, fmt.Sprintf("nats://%s-nats:4222", r.Namespace))},
			{Name: "ETCD_ENDPOINTS", Value: cmp.Or(p.Etcd, fmt.Sprintf("%s-etcd:2379", r.Namespace))},
			{Name: "DGDR_NAME", Value: r.Name},
			{Name: "DGDR_NAMESPACE", Value: r.Namespace},
			{Name: "DGDR_UID", Value: string(r.UID)},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// profilerOfOne is the contract from 1.0 on: what it is asked is the spec of a
// request of v1beta1.
func profilerOfOne(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, p Profiling) corev1.Container {
	c := corev1.Container{
		Name: requestplan.ProfilerContainer, Image: step.Record.Image(), WorkingDir: "/workspace",
		Command: []string{"python", "-m", "dynamo.profiler"},
		Args:    []string{"--config", step.Record.Config, "--output-dir", requestplan.OutputPath},
		Env: []corev1.EnvVar{
			{Name: "DGDR_NAME", Value: r.Name},
			{Name: "DGDR_NAMESPACE", Value: r.Namespace},
			{Name: "DGDR_UID", Value: string(r.UID)},
			hubToken(),
			{Name: "NATS_SERVER", Value: cmp.Or(p.NATS, fmt.Sprintf("nats://%s-nats:4222", r.Namespace))},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if p.Etcd != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: "ETCD_ENDPOINTS", Value: p.Etcd})
	}
	return c
}

// foreignProfiler runs a profiler of others by the contract that it knows: the
// configuration as an argument, files as the result, and beside it a collector
// that brings them into the ConfigMap.
func foreignProfiler(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, p Profiling, job *batchv1.Job, profiler corev1.Container) {
	collector := corev1.Container{
		Name: requestplan.CollectorContainer, Image: p.Image,
		Args: []string{
			"collect", "--from", requestplan.OutputPath, "--container", requestplan.ProfilerContainer,
			"--pod", "$(POD_NAME)", "--namespace", r.Namespace, "--result", graph.ProfilingOutput(r.Name),
			"--termination-log", corev1.TerminationMessagePathDefault,
		},
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          confined(),
		VolumeMounts:             []corev1.VolumeMount{{Name: volumeOutput, MountPath: requestplan.OutputPath, ReadOnly: true}},
	}
	spec := &job.Spec.Template.Spec
	mountFiles(step, spec, &profiler)
	spec.Containers = []corev1.Container{profiler, collector}
	spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "nvcr-imagepullsecret"}}
}

// mountFiles gives a profiler what every contract has: a place for files, the
// graph to start from, a model's files, and its resources.
func mountFiles(step requestplan.Step, spec *corev1.PodSpec, profiler *corev1.Container) {
	config := step.Record.Spec.ProfilingConfig
	if config.Resources != nil {
		profiler.Resources = *config.Resources
	}
	mount := func(name, path string, readOnly bool, source corev1.VolumeSource) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		profiler.VolumeMounts = append(profiler.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}
	output := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	if config.OutputPVC != "" {
		output = claimed(config.OutputPVC, false)
	}
	mount(volumeOutput, requestplan.OutputPath, false, output)
	if ref := config.ConfigMapRef; ref != nil {
		mount(volumeBase, requestplan.BaseFolder, true, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name},
			Items:                []corev1.KeyToPath{{Key: cmp.Or(ref.Key, requestplan.BaseFile), Path: requestplan.BaseFile}},
		}})
	}
	if cache := requestplan.CacheOf([]byte(step.Record.Config)); cache.Claim != "" {
		mount(volumeCache, cache.Path, true, claimed(cache.Claim, true))
	}
}

func claimed(claim string, readOnly bool) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: readOnly}}
}

// hubToken lets a profiler read models that need a login, where there is one.
func hubToken() corev1.EnvVar {
	return corev1.EnvVar{Name: "HUGGING_FACE_HUB_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "hf-token-secret"}, Key: "HF_TOKEN", Optional: new(true),
	}}}
}

// confined is what programs of ours need no more than.
func confined() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// pullSecrets adds the Secrets that a pod's images need to those that it has.
func pullSecrets(spec *corev1.PodSpec, known snapshot.PullSecrets) []corev1.LocalObjectReference {
	refs := spec.ImagePullSecrets
	for _, c := range spec.Containers {
		for _, name := range known[snapshot.Registry(c.Image)] {
			if ref := (corev1.LocalObjectReference{Name: name}); !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}
