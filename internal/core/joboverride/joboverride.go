// Package joboverride puts what a request wants different of its profiling Job over
// the Job: an allow-list of what a Job's pod may be told. The author of a request
// may make graphs in its namespace, whose pods they may shape; so they may shape
// this one as far, but for the account, which is the profiler's.
package joboverride

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// GuardAccount keeps the profiling Job on the account that the operator makes.
const GuardAccount guard.Guard = "profiling-job-account"

// Containers of a profiling Job.
const (
	Profiler  = "profiler"
	Collector = "output-copier"
)

// Apply puts an override over a Job.
func Apply(job *batchv1.JobSpec, over *batchv1.JobSpec) error {
	if over == nil {
		return nil
	}
	allowed := allow(over)
	if allowed.ActiveDeadlineSeconds != nil {
		job.ActiveDeadlineSeconds = allowed.ActiveDeadlineSeconds
	}
	if allowed.BackoffLimit != nil {
		job.BackoffLimit = allowed.BackoffLimit
	}
	// A volume is replaced: one with two sources would be none.
	for _, v := range allowed.Template.Spec.Volumes {
		at := slices.IndexFunc(job.Template.Spec.Volumes, func(has corev1.Volume) bool { return has.Name == v.Name })
		if at < 0 {
			job.Template.Spec.Volumes = append(job.Template.Spec.Volumes, v)
		} else {
			job.Template.Spec.Volumes[at] = v
		}
	}
	allowed.Template.Spec.Volumes = nil
	// Variables refer to those before them, so new ones come last.
	for i := range allowed.Template.Spec.Containers {
		variables(job.Template.Spec.Containers, &allowed.Template.Spec.Containers[i])
	}
	// So that containers which the Job has not are not made.
	allowed.Template.Spec.Containers = slices.DeleteFunc(allowed.Template.Spec.Containers, func(c corev1.Container) bool {
		return !slices.ContainsFunc(job.Template.Spec.Containers, func(has corev1.Container) bool { return has.Name == c.Name })
	})
	if err := merge(&job.Template, &allowed.Template); err != nil {
		return fmt.Errorf("overrides.profilingJob: %w", err)
	}
	return nil
}

// merge puts what a template says over another; what it does not say is left out of
// the patch, since a null would remove.
func merge(into, over *corev1.PodTemplateSpec) error {
	base, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return err
	}
	patch, err := tree(over)
	if err != nil {
		return err
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(base, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return err
	}
	*into = corev1.PodTemplateSpec{}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(merged, into)
}

// variables moves those of an override into the container of its name.
func variables(containers []corev1.Container, over *corev1.Container) {
	for i := range containers {
		c := &containers[i]
		if c.Name != over.Name {
			continue
		}
		for _, v := range over.Env {
			if at := slices.IndexFunc(c.Env, func(has corev1.EnvVar) bool { return has.Name == v.Name }); at < 0 {
				c.Env = append(c.Env, v)
			} else {
				c.Env[at] = v
			}
		}
	}
	over.Env = nil
}

// tree is what an object says.
func tree(object any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	prune(fields)
	return fields, err
}

// prune removes what says nothing.
func prune(fields map[string]any) {
	maps.DeleteFunc(fields, func(_ string, value any) bool {
		switch v := value.(type) {
		case nil:
			return true
		case map[string]any:
			had := len(v)
			prune(v)
			return had > 0 && len(v) == 0
		case []any:
			for _, item := range v {
				if below, ok := item.(map[string]any); ok {
					prune(below)
				}
			}
		}
		return false
	})
}

// controllers write these labels.
func ofController(key string) bool {
	return strings.HasPrefix(key, "batch.kubernetes.io/") || key == "controller-uid" || key == "job-name"
}

// allow is what of an override counts.
func allow(over *batchv1.JobSpec) batchv1.JobSpec {
	in := over.DeepCopy()
	from := &in.Template.Spec
	out := batchv1.JobSpec{ActiveDeadlineSeconds: in.ActiveDeadlineSeconds, BackoffLimit: in.BackoffLimit}
	out.Template.Labels, out.Template.Annotations = in.Template.Labels, in.Template.Annotations
	maps.DeleteFunc(out.Template.Labels, func(key, _ string) bool { return ofController(key) })
	out.Template.Spec = corev1.PodSpec{
		NodeSelector: from.NodeSelector, Tolerations: from.Tolerations, Affinity: from.Affinity, TopologySpreadConstraints: from.TopologySpreadConstraints,
		Volumes: from.Volumes, ImagePullSecrets: from.ImagePullSecrets, ResourceClaims: from.ResourceClaims,
		PriorityClassName: from.PriorityClassName, RuntimeClassName: from.RuntimeClassName, SchedulerName: from.SchedulerName,
		SecurityContext: from.SecurityContext, DNSPolicy: from.DNSPolicy, DNSConfig: from.DNSConfig, HostAliases: from.HostAliases,
		TerminationGracePeriodSeconds: from.TerminationGracePeriodSeconds, EnableServiceLinks: from.EnableServiceLinks,
	}
	if GuardAccount.Off() {
		out.Template.Spec.ServiceAccountName = from.ServiceAccountName
	}
	for _, c := range from.Containers {
		if allowed, ok := container(c); ok {
			out.Template.Spec.Containers = append(out.Template.Spec.Containers, allowed)
		}
	}
	for _, c := range from.InitContainers {
		switch allowed, ok := container(c); {
		case c.Image != "":
			out.Template.Spec.InitContainers = append(out.Template.Spec.InitContainers, c)
		case ok:
			// Published so: one without an image can only mean the Job's own.
			out.Template.Spec.Containers = append(out.Template.Spec.Containers, allowed)
		}
	}
	return out
}

// container is what of a container of the Job may be told. Its image is a field of
// the request, and its command the contract.
func container(c corev1.Container) (corev1.Container, bool) {
	switch c.Name {
	case Profiler:
		return corev1.Container{
			Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom, Resources: c.Resources, VolumeMounts: c.VolumeMounts, VolumeDevices: c.VolumeDevices,
			SecurityContext: c.SecurityContext, ImagePullPolicy: c.ImagePullPolicy, WorkingDir: c.WorkingDir,
		}, true
	case Collector:
		return corev1.Container{Name: c.Name, Resources: c.Resources}, true
	default:
		return corev1.Container{}, false
	}
}

// Ignored names the fields of an override that do not count, by their path.
func Ignored(over *batchv1.JobSpec) []string {
	if over == nil {
		return nil
	}
	given, err := tree(over)
	if err != nil {
		return nil
	}
	kept, err := tree(new(allow(over)))
	if err != nil {
		return nil
	}
	// What a template cannot be without.
	delete(at(given, "template", "spec"), "restartPolicy")
	var paths []string
	missing("", given, kept, &paths)
	slices.Sort(paths)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		// An init container without an image counts as the container of its name.
		return strings.HasPrefix(path, "template.spec.initContainers["+Profiler+"]")
	})
	if len(paths) == 0 {
		return nil
	}
	return paths
}

func at(fields map[string]any, path ...string) map[string]any {
	for _, step := range path {
		fields, _ = fields[step].(map[string]any)
	}
	return fields
}

// missing lists what one tree has and the other has not.
func missing(path string, given, kept map[string]any, into *[]string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		below := strings.TrimPrefix(path+"."+key, ".")
		switch v := given[key].(type) {
		case map[string]any:
			other, ok := kept[key].(map[string]any)
			if !ok && len(v) > 0 && key != "template" && key != "spec" && key != "metadata" {
				*into = append(*into, below)
				continue
			}
			missing(below, v, other, into)
		case []any:
			others := named(kept[key])
			for name, item := range named(v) {
				if other, ok := others[name]; ok {
					missing(below+"["+name+"]", item, other, into)
				} else {
					*into = append(*into, below+"["+name+"]")
				}
			}
			if _, ok := kept[key]; !ok && len(named(v)) == 0 && len(v) > 0 {
				*into = append(*into, below)
			}
		default:
			if _, ok := kept[key]; !ok {
				*into = append(*into, below)
			}
		}
	}
}

// named are the items of a list that have a name.
func named(value any) map[string]map[string]any {
	items, _ := value.([]any)
	all := map[string]map[string]any{}
	for _, item := range items {
		fields, _ := item.(map[string]any)
		if name, ok := fields["name"].(string); ok {
			all[name] = fields
		}
	}
	return all
}
