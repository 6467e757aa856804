package compat

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// TestWorkloadsThatRelease14LeftAreTakenOver reads graphs and components as 1.4.1 left
// them, hashes in names and all, and renders from those: what runs has to be wanted
// under its own name, and nothing beside it.
func TestWorkloadsThatRelease14LeftAreTakenOver(t *testing.T) {
	recordings := recordingsIn(t, "DYNAMO_REFERENCE_14_DIR", "reference-1.4")
	manifests := manifestsWithGraphs(corpus.In(t, filepath.Join(recordings, "manifests")))
	for _, path := range paths {
		got, kept, taken := newTally(release), newTally(release), 0
		got.trim, kept.trim = sent, sent
		for _, manifest := range slices.Sorted(maps.Keys(manifests)) {
			left := made(reference(t, recordings, path, manifest), manifests[manifest])
			r := &rehearsal{Client: unsent{}, offline: true, pullSecrets: pullSecrets(t, manifests[manifest]), left: left}
			views, graphs := views(t, recordings, manifest), 0
			for _, o := range left {
				if o.GetKind() != v1alpha1.KindDynamoGraphDeployment {
					continue
				}
				graphs++
				if err := r.takeOver(t, asLeft(t, o, views), left, path); err != nil {
					t.Logf("%s is taken over in part: %v", manifest, err)
				}
			}
			if graphs > 0 { // what stands alone has no other name
				taken++
				got.add(path, manifest, running(left), running(r.stored))
				kept.add(path, manifest, running(left), running(r.kept))
			}
		}
		for _, d := range got.unexplained {
			t.Errorf("%s, %s: %s\n  theirs %.200s\n  ours   %.200s", d.manifest, d.identity, d.leaf, d.theirs, d.ours)
		}
		for reason, differences := range got.intended {
			if reason.title != generationsUnderGrove {
				continue
			}
			for _, d := range differences {
				t.Errorf("%s, %s: %s: pods that were taken over are told their generation", d.manifest, d.identity, d.leaf)
			}
		}
		takeover(t, path, kept, taken)
	}
}

// takeOver rehearses the first reconcile over a graph that somebody else has made
// objects for.
func (r *rehearsal) takeOver(t *testing.T, dgd *unstructured.Unstructured, left []*unstructured.Unstructured, path workload.Provider) error {
	t.Helper()
	var owned []graph.Object
	for _, o := range left {
		if o.GetKind() == v1alpha1.KindDynamoComponentDeployment && o.GetLabels()[v1alpha1.LabelGraphName] == dgd.GetName() {
			dcd := &v1alpha1.DynamoComponentDeployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(asStored(t, o).Object, dcd); err != nil {
				t.Fatal(err)
			}
			owned = append(owned, dcd)
		}
		if o.GetKind() == "PodCliqueSet" && slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Name == dgd.GetName() }) {
			owned = append(owned, &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Labels: o.GetLabels(), Annotations: o.GetAnnotations()}})
		}
	}
	p := platform(path)
	p.Pod.PullSecrets = r.pullSecrets
	p.Defaults.Running = graph.ReadRunning(dgd, owned)
	return r.graph(t.Context(), dgd, path, p)
}

// views are the objects of a manifest as the original shows them in v1alpha1, which it
// stores; none where that was not recorded.
func views(t *testing.T, recordings, manifest string) []*unstructured.Unstructured {
	t.Helper()
	if _, err := os.Stat(recordingOf(recordings, alphaViews, manifest)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return reference(t, recordings, alphaViews, manifest)
}

// alphaViews is the folder of what was read as v1alpha1.
const alphaViews = "alpha-views"

// asLeft is a graph as the original stored it: with its own payload, and without our word
// for the version that it was written as.
func asLeft(t *testing.T, dgd *unstructured.Unstructured, views []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored := asStored(t, dgd)
	stored.SetGeneration(1)
	stored.Object["status"] = map[string]any{"observedGeneration": int64(1), "state": string(v1alpha1.GraphStateSuccessful)}
	for _, view := range views {
		if view.GetKind() != dgd.GetKind() || view.GetName() != dgd.GetName() {
			continue
		}
		stored.Object["spec"] = view.Object["spec"]
		for _, key := range []string{v1alpha1.AnnotationWrittenAs, v1alpha1.AnnotationGraphPayload} {
			unstructured.RemoveNestedField(stored.Object, "metadata", "annotations", key)
		}
		if payload, there := view.GetAnnotations()[v1alpha1.AnnotationGraphPayload]; there {
			if err := unstructured.SetNestedField(stored.Object, payload, "metadata", "annotations", v1alpha1.AnnotationGraphPayload); err != nil {
				t.Fatal(err)
			}
		}
	}
	return stored
}

// asStored is an object in the version that the operator reads.
func asStored(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	raw, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversion.Convert(raw, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON(result.JSON); err != nil {
		t.Fatal(err)
	}
	return stored
}

// running are the objects that pods are made from, as they are compared.
func running(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var workloads []*unstructured.Unstructured
	for _, o := range objects {
		if templates[o.GetKind()] == nil {
			continue
		}
		o = o.DeepCopy()
		o.Object = mapped(o.Object, nil).(map[string]any)
		workloads = append(workloads, o)
	}
	return workloads
}
