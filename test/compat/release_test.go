package compat

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

func TestPublishedGraphsBecomeTheObjectsOfRelease14(t *testing.T) {
	recordings := recordingsIn(t, "DYNAMO_REFERENCE_14_DIR", "reference-1.4")
	measure(t, edition{
		part: pageRelease, target: 98, reasons: release,
		recordings: recordings, manifests: manifestsWithGraphs(corpus.In(t, filepath.Join(recordings, "manifests"))),
		offline:  true,
		platform: releasePlatform, read: asBeta, partly: true,
	})
}

// releasePlatform is the configuration that 1.4.1 was recorded under.
func releasePlatform(path workload.Provider) render.Platform {
	p := platform(path)
	p.Defaults.Contract = graph.ContractRules{Forced: graph.ContractV1}
	return p
}

// generation stands for the id of a generation of workers, which each operator
// makes in its own way.
const generation = "<generation>"

// asBeta reads objects as the original shows them: ours in v1beta1, workers
// without the id of their generation in their names.
func asBeta(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	ids := map[string]bool{}
	for _, o := range objects {
		note(ids, o.GetLabels()[v1alpha1.LabelGeneration])
		cliques, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "cliques")
		for _, clique := range cliques {
			id, _, _ := unstructured.NestedString(clique.(map[string]any), "labels", v1alpha1.LabelGeneration)
			note(ids, id)
		}
		note(ids, o.GetAnnotations()[v1alpha1.AnnotationGeneration])
	}
	var read []*unstructured.Unstructured
	for _, o := range objects {
		o = o.DeepCopy()
		if o.GetAPIVersion() == v1alpha1.SchemeGroupVersion.String() && conversion.Convertible(o.GetKind()) {
			o = converted(t, o)
		}
		o.Object = mapped(o.Object, ids).(map[string]any)
		read = append(read, o)
	}
	return read
}

func note(ids map[string]bool, id string) {
	if id != "" {
		ids[id] = true
	}
}

func converted(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	raw, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversion.Convert(raw, v1beta1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	beta := &unstructured.Unstructured{}
	if err := beta.UnmarshalJSON(result.JSON); err != nil {
		t.Fatal(err)
	}
	return beta
}

// mapped takes the ids of generations out of names and values.
func mapped(value any, ids map[string]bool) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			switch name {
			case "annotations":
				if member = compared(member); member == nil {
					delete(v, name)
					continue
				}
			case "ownerReferences":
				for _, owner := range member.([]any) {
					delete(owner.(map[string]any), "apiVersion")
				}
			}
			if v[name] = mapped(member, ids); name == "metadata" && len(v[name].(map[string]any)) == 0 {
				delete(v, name) // what it held is not compared
			}
		}
		return v
	case []any:
		for i, item := range v {
			v[i] = mapped(item, ids)
		}
		return v
	case string:
		for id := range ids {
			if v == id {
				return generation
			}
			v = strings.ReplaceAll(v, "-"+id, "")
		}
		return v
	default:
		return v
	}
}

// notes are annotations in which either operator keeps something for itself.
var notes = []string{
	v1alpha1.AnnotationGraphPayload, v1alpha1.AnnotationComponentPayload, v1alpha1.AnnotationWrittenAs,
	v1alpha1.AnnotationOriginVersion, v1alpha1.AnnotationGeneration, v1alpha1.AnnotationEarlierGeneration,
	v1alpha1.AnnotationRuntimeContract, v1alpha1.AnnotationRuntimeContractChoice, v1alpha1.AnnotationAdoptedWorkers,
}

// compared leaves out of annotations what is not compared.
func compared(value any) any {
	annotations, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for _, key := range notes {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}
