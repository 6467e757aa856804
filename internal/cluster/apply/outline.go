package apply

import (
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

// mostOwners and longestOwner bound which owners of an object are held. Ours come
// first, so that an object of many is still found by them.
const (
	mostOwners   = 32
	longestOwner = 1024
)

// TrimConfigMap is Trim for a kind whose content may be large and is rarely
// needed: the informer asks for metadata, and the cache holds an outline of that.
// What is in a ConfigMap is read from the API server when an apply has to be
// decided.
func TrimConfigMap(object any) (any, error) {
	c, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || guard.Outlines.Off() {
		return Trim(object)
	}
	return &metav1.PartialObjectMetadata{TypeMeta: c.TypeMeta, ObjectMeta: outline(c)}, nil
}

// TrimJob is Trim for Jobs, of which how they end is of interest and not what they
// run.
func TrimJob(object any) (any, error) {
	j, ok := object.(*batchv1.Job)
	if !ok || guard.Outlines.Off() {
		return Trim(object)
	}
	return &batchv1.Job{
		TypeMeta: j.TypeMeta, ObjectMeta: outline(j), Status: j.Status,
		Spec: batchv1.JobSpec{ActiveDeadlineSeconds: j.Spec.ActiveDeadlineSeconds, BackoffLimit: j.Spec.BackoffLimit, Suspend: j.Spec.Suspend},
	}, nil
}

// TrimRevision is Trim for the revisions of graphs, of which is told what became of
// them and not what they hold: that is read by who goes back to one.
func TrimRevision(object any) (any, error) {
	r, ok := object.(*appsv1.ControllerRevision)
	if !ok || guard.Outlines.Off() {
		return Trim(object)
	}
	trimmed := &appsv1.ControllerRevision{TypeMeta: r.TypeMeta, ObjectMeta: outline(r), Revision: r.Revision}
	trimmed.Labels = pick(r.Labels, v1alpha1.LabelGraphName, v1alpha1.LabelManagedBy, v1alpha1.LabelGeneration)
	trimmed.Annotations = pick(r.Annotations, v1alpha1.AnnotationRolloutResult, v1alpha1.AnnotationChangeCause)
	if record, found := r.Annotations[v1alpha1.AnnotationRolloutRecord]; found && len(record) <= revision.LongestRecord {
		if trimmed.Annotations == nil {
			trimmed.Annotations = map[string]string{}
		}
		trimmed.Annotations[v1alpha1.AnnotationRolloutRecord] = record
	}
	return trimmed, nil
}

// TrimForeign is Trim for kinds that everybody has objects of: of those that do
// not concern us the cache holds an outline, which is enough to see that a name is
// taken. A tenant can make an object look like ours; how many of those there may
// be is for a quota of the namespace to say.
func TrimForeign(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok || guard.Outlines.Off() || concernsUs(o) {
		return Trim(object)
	}
	empty, ok := reflect.TypeAssert[metav1.ObjectMetaAccessor](reflect.New(reflect.TypeOf(object).Elem()))
	if !ok {
		return Trim(object)
	}
	meta, ok := empty.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return Trim(object)
	}
	*meta = outline(o)
	return empty, nil
}

// TrimDeviceTemplate is TrimForeign for templates of claims to devices, which users
// make for their graphs: of those the cache holds how many devices of which class
// they ask for, and not what is asked of each.
func TrimDeviceTemplate(object any) (any, error) {
	t, ok := object.(*resourcev1.ResourceClaimTemplate)
	if !ok || guard.Outlines.Off() || concernsUs(t) {
		return Trim(object)
	}
	trimmed := &resourcev1.ResourceClaimTemplate{TypeMeta: t.TypeMeta, ObjectMeta: outline(t)}
	for _, r := range t.Spec.Spec.Devices.Requests {
		kept := resourcev1.DeviceRequest{Name: r.Name}
		if e := r.Exactly; e != nil {
			kept.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: e.DeviceClassName, AllocationMode: e.AllocationMode, Count: e.Count}
		}
		for _, a := range r.FirstAvailable {
			kept.FirstAvailable = append(kept.FirstAvailable, resourcev1.DeviceSubRequest{Name: a.Name, DeviceClassName: a.DeviceClassName, AllocationMode: a.AllocationMode, Count: a.Count})
		}
		trimmed.Spec.Spec.Devices.Requests = append(trimmed.Spec.Spec.Devices.Requests, kept)
	}
	return trimmed, nil
}

// concernsUs reports whether an object is ours, or of an earlier operator, or
// could be.
func concernsUs(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), ofOurs) ||
		slices.ContainsFunc(o.GetManagedFields(), ours) ||
		o.GetAnnotations()[v1alpha1.AnnotationLastAppliedHash] != "" ||
		o.GetLabels()["app.kubernetes.io/managed-by"] == FieldManager ||
		o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy ||
		o.GetLabels()[v1alpha1.LabelRequestName] != ""
}

func ofOurs(ref metav1.OwnerReference) bool {
	return strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/")
}

// outline is what tells an object apart and whose it is.
func outline(o metav1.Object) metav1.ObjectMeta {
	owners := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return len(ref.APIVersion)+len(ref.Kind)+len(ref.Name)+len(ref.UID) > longestOwner
	})
	slices.SortStableFunc(owners, func(a, b metav1.OwnerReference) int {
		switch {
		case ofOurs(a) == ofOurs(b):
			return 0
		case ofOurs(a):
			return -1
		default:
			return 1
		}
	})
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
		OwnerReferences: owners[:min(len(owners), mostOwners)],
		Labels: pick(o.GetLabels(), v1alpha1.LabelGraphName, v1alpha1.LabelGraphUID, v1alpha1.LabelComponent, v1alpha1.LabelComponentPod, v1alpha1.LabelManagedBy,
			v1alpha1.LabelRequestName, v1alpha1.LabelRequestNamespace, "app.kubernetes.io/managed-by"),
		Annotations: pick(o.GetAnnotations(), v1alpha1.AnnotationProfilingAttempt),
	}
}

// longestValue bounds an annotation of an outline; labels are shorter anyway.
const longestValue = 256

func pick(from map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, found := from[key]; found && len(value) <= longestValue {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}
