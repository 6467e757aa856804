// Package adoption decides what stays of a workload that an earlier operator made:
// its pod templates, until what is wanted of them changes. Ours differ from the
// original's here and there, and a difference of words is no reason to load a model
// again.
package adoption

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Record says of which templates a workload was adopted with others: by the place of
// each, a digest of what was wanted of it then and one of what it was. It is kept in an
// annotation.
type Record map[string]Digests

// Digests are those of one template.
type Digests struct{ Wanted, Live string }

// ReadRecord is what an object's annotation says; nil if it says nothing.
func ReadRecord(annotations map[string]string) Record {
	text := annotations[v1alpha1.AnnotationAdoptedTemplates]
	if text == "" {
		return nil
	}
	record := Record{}
	for part := range strings.SplitSeq(text, ",") {
		place, digests, _ := strings.Cut(part, "=")
		if wanted, live, ok := strings.Cut(digests, "/"); ok {
			record[place] = Digests{wanted, live}
		}
	}
	return record
}

// String is the value of the annotation.
func (r Record) String() string {
	parts := make([]string, 0, len(r))
	for _, place := range slices.Sorted(maps.Keys(r)) {
		parts = append(parts, place+"="+r[place].Wanted+"/"+r[place].Live)
	}
	return strings.Join(parts, ",")
}

// RecordOf is the record of a workload that is adopted while wanted is wanted of it;
// empty for what makes no pods.
func RecordOf(wanted, live map[string]any) (Record, error) {
	want, err := digests(wanted)
	if err != nil {
		return nil, err
	}
	have, err := digests(live)
	if err != nil {
		return nil, err
	}
	record := Record{}
	for place := range want {
		if have[place] != "" {
			record[place] = Digests{want[place], have[place]}
		}
	}
	return record, nil
}

// Same reports whether two states of a workload have the same pod templates.
func Same(one, other map[string]any) (bool, error) {
	a, err := digests(one)
	if err != nil {
		return false, err
	}
	b, err := digests(other)
	return maps.Equal(a, b), err
}

// digests of a workload's templates, by their place.
func digests(object map[string]any) (map[string]string, error) {
	all := map[string]string{}
	for place, t := range templates(object) {
		digest, err := t.digest()
		if err != nil {
			return nil, fmt.Errorf("digest of pod template %s: %w", place, err)
		}
		all[place] = digest
	}
	return all, nil
}

// Retain is what is wanted of a workload with the templates that it was adopted with,
// where the record says that nothing else has been wanted of them since and that nobody
// has changed them. It carries the record of those. A template goes on only if everything
// that finds its pods still does, and if its pods claim the devices that ours would: what
// claims are made from is ours.
func Retain(wanted, live map[string]any, record Record) (map[string]any, error) {
	now, err := RecordOf(wanted, live)
	if err != nil {
		return nil, err
	}
	retained, kept := runtime.DeepCopyJSON(wanted), Record{}
	ours, theirs := templates(retained), templates(live)
	for place, t := range ours {
		if old, there := theirs[place]; there && record[place] == now[place] && old.found(t) && old.claimsAs(t) {
			t.replace(old)
			kept[place] = now[place]
		}
	}
	if len(kept) == 0 {
		return wanted, nil
	}
	return retained, unstructured.SetNestedField(retained, kept.String(), "metadata", "annotations", v1alpha1.AnnotationAdoptedTemplates)
}

// template is what makes pods of one kind: fields of an object, and where its pod
// templates are among those.
type template struct {
	in     map[string]any
	fields []string
	// pods are paths below in that lead to metadata and spec of pods.
	pods []podPath
}

type podPath struct{ metadata, spec []string }

// templates of a workload, by name.
func templates(object map[string]any) map[string]template {
	kind, _, _ := unstructured.NestedString(object, "kind")
	spec, _ := object["spec"].(map[string]any)
	switch kind {
	case "Deployment":
		return map[string]template{"pods": {in: spec, fields: []string{"template"}, pods: []podPath{{[]string{"template", "metadata"}, []string{"template", "spec"}}}}}
	case "LeaderWorkerSet":
		// Its controller replaces groups for anything in these.
		path := func(name string) podPath {
			return podPath{[]string{"leaderWorkerTemplate", name, "metadata"}, []string{"leaderWorkerTemplate", name, "spec"}}
		}
		return map[string]template{"pods": {in: spec, fields: []string{"leaderWorkerTemplate", "networkConfig"}, pods: []podPath{path("leaderTemplate"), path("workerTemplate")}}}
	case "PodCliqueSet":
		all := map[string]template{}
		cliques, _, _ := unstructured.NestedFieldNoCopy(spec, "template", "cliques")
		list, _ := cliques.([]any)
		for _, item := range list {
			clique, _ := item.(map[string]any)
			if name, ok := clique["name"].(string); ok {
				all[name] = template{in: clique, fields: []string{"labels", "annotations", "spec/podSpec"}, pods: []podPath{{nil, []string{"spec", "podSpec"}}}}
			}
		}
		return all
	}
	return nil
}

// value is one of the fields.
func (t template) value(field string) any {
	found, _, _ := unstructured.NestedFieldNoCopy(t.in, strings.Split(field, "/")...)
	return found
}

func (t template) digest() (string, error) {
	var all []any
	for _, field := range t.fields {
		all = append(all, withoutNulls(t.value(field)))
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// replace writes another's fields into the object that this one is of.
func (t template) replace(by template) {
	for _, field := range t.fields {
		path := strings.Split(field, "/")
		parent := t.in
		for _, name := range path[:len(path)-1] {
			parent, _ = parent[name].(map[string]any)
		}
		if parent == nil {
			continue
		}
		last := path[len(path)-1]
		if value := withoutNulls(by.value(field)); value != nil {
			parent[last] = runtime.DeepCopyJSONValue(value)
		} else {
			delete(parent, last)
		}
	}
}

// found reports whether pods of a template carry every label that another's would:
// Services and selectors go by those.
func (t template) found(as template) bool {
	for n, path := range as.pods {
		want, have := as.labels(path), map[string]any(nil)
		if n < len(t.pods) {
			have = t.labels(t.pods[n])
		}
		for key, value := range want {
			if have[key] != value {
				return false
			}
		}
	}
	return true
}

func (t template) labels(of podPath) map[string]any {
	metadata := t.in
	if of.metadata != nil {
		found, _, _ := unstructured.NestedFieldNoCopy(t.in, of.metadata...)
		metadata, _ = found.(map[string]any)
	}
	labels, _ := metadata["labels"].(map[string]any)
	return labels
}

// claimsAs reports whether pods claim the same devices as another template's.
func (t template) claimsAs(as template) bool {
	claims := func(t template) []any {
		var all []any
		for _, path := range t.pods {
			list, _, _ := unstructured.NestedFieldNoCopy(t.in, append(slices.Clone(path.spec), "resourceClaims")...)
			all = append(all, withoutNulls(list))
		}
		return all
	}
	return reflect.DeepEqual(claims(t), claims(as))
}

// withoutNulls drops what encoders write for nothing, such as the time at which a
// template was created.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for k, v := range value {
			if v != nil {
				kept[k] = withoutNulls(v)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, v := range value {
			kept[i] = withoutNulls(v)
		}
		return kept
	default:
		return value
	}
}
