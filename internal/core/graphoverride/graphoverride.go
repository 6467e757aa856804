// Package graphoverride puts the partial graph of a request over the graph that a
// profiler found: overrides.dgd of either version, merged in its own, by the keys
// that lists of Kubernetes have.
package graphoverride

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// Override is a partial graph.
type Override struct {
	// Name, Labels and Annotations are all that is taken of its metadata: where a
	// graph goes is not said here.
	Name                string
	Labels, Annotations map[string]string

	beta bool
	spec map[string]any
}

// Name is that of the graph that an override wants; empty if it wants none, or
// cannot be read.
func Name(raw *runtime.RawExtension) string {
	o, err := Parse(raw)
	if err != nil {
		return ""
	}
	return o.Name
}

// Parse reads an override. One that says nothing is one, too.
func Parse(raw *runtime.RawExtension) (Override, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return Override{}, nil
	}
	var head metav1.PartialObjectMetadata
	var fields map[string]any
	if err := errors.Join(json.Unmarshal(raw.Raw, &fields), json.Unmarshal(raw.Raw, &head)); err != nil {
		return Override{}, fmt.Errorf("overrides.dgd: %w", err)
	}
	if head.Kind != "" && head.Kind != v1alpha1.KindDynamoGraphDeployment {
		return Override{}, fmt.Errorf("overrides.dgd: it is a %s, not a %s", head.Kind, v1alpha1.KindDynamoGraphDeployment)
	}
	o := Override{Name: head.Name, Labels: head.Labels, Annotations: head.Annotations}
	o.spec, _ = fields["spec"].(map[string]any)
	switch head.APIVersion {
	case v1beta1.SchemeGroupVersion.String():
		o.beta = true
	case v1alpha1.SchemeGroupVersion.String():
	case "":
		_, o.beta = o.spec["components"]
	default:
		return Override{}, fmt.Errorf("overrides.dgd: apiVersion %s is neither %s nor %s", head.APIVersion, v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion)
	}
	if _, given := fields["status"]; given {
		return Override{}, errors.New("overrides.dgd: a status cannot be overridden")
	}
	if at := directive(fields["spec"], "spec"); at != "" {
		return Override{}, fmt.Errorf("overrides.dgd: %s: an override adds and replaces; it neither removes by null nor has directives", at)
	}
	return o, nil
}

// directive finds a null, or a word that a strategic merge would take for an
// order, and says where.
func directive(value any, at string) string {
	switch v := value.(type) {
	case nil:
		if at != "spec" {
			return at
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if strings.HasPrefix(key, "$") {
				return at + "." + key
			}
			if found := directive(v[key], at+"."+key); found != "" {
				return found
			}
		}
	case []any:
		for i, item := range v {
			if found := directive(item, fmt.Sprintf("%s[%d]", at, i)); found != "" {
				return found
			}
		}
	}
	return ""
}

// Apply puts the override over a graph, in the version of the override.
func (o Override) Apply(g *v1alpha1.DynamoGraphDeployment) (*v1alpha1.DynamoGraphDeployment, error) {
	merged := &v1alpha1.DynamoGraphDeployment{}
	if o.beta {
		beta, _ := conversion.GraphToBeta(g)
		if err := overlay(beta, merged, o.components); err != nil {
			return nil, err
		}
	} else if err := overlay(g, merged, o.services); err != nil {
		return nil, err
	}
	merged.Labels, merged.Annotations = join(merged.Labels, o.Labels), join(merged.Annotations, o.Annotations)
	return merged, nil
}

// overlay merges into the spec of a typed object and reads the result into the
// stored version.
func overlay[T any](from *T, into *v1alpha1.DynamoGraphDeployment, merge func(spec map[string]any) (map[string]any, error)) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("overrides.dgd: %w", err)
	}
	spec, _ := fields["spec"].(map[string]any)
	if fields["spec"], err = merge(spec); err != nil {
		return fmt.Errorf("overrides.dgd: %w", err)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("overrides.dgd: %w", err)
	}
	typed := new(T)
	if err := yaml.UnmarshalStrict(text, typed); err != nil {
		return fmt.Errorf("overrides.dgd: %w", err)
	}
	switch typed := any(typed).(type) {
	case *v1beta1.DynamoGraphDeployment:
		alpha, _ := conversion.GraphToAlpha(typed)
		*into = *alpha
	case *v1alpha1.DynamoGraphDeployment:
		*into = *typed
	}
	return nil
}

// components merges an override of v1beta1.
func (o Override) components(spec map[string]any) (map[string]any, error) {
	known := map[string]bool{}
	for _, c := range list(spec["components"]) {
		known[text(c["name"])] = true
	}
	for _, c := range list(o.spec["components"]) {
		if err := exists("component", text(c["name"]), known); err != nil {
			return nil, err
		}
	}
	return strategicpatch.StrategicMergeMapPatch(spec, o.spec, v1beta1.DynamoGraphDeploymentSpec{})
}

// services merges an override of v1alpha1. Arguments of workers are added to those
// that the profiler found.
func (o Override) services(spec map[string]any) (map[string]any, error) {
	services, _ := spec["services"].(map[string]any)
	over, _ := o.spec["services"].(map[string]any)
	rest := maps.Clone(o.spec)
	delete(rest, "services")
	known := map[string]bool{}
	for name := range services {
		known[name] = true
	}
	spec, err := strategicpatch.StrategicMergeMapPatch(spec, rest, v1alpha1.DynamoGraphDeploymentSpec{})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		if err := exists("service", name, known); err != nil {
			return nil, err
		}
		service, _ := services[name].(map[string]any)
		patch, ok := over[name].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("service %s is not an object", name)
		}
		appendArgs(service, patch)
		if services[name], err = strategicpatch.StrategicMergeMapPatch(service, patch, v1alpha1.SharedSpec{}); err != nil {
			return nil, fmt.Errorf("service %s: %w", name, err)
		}
	}
	spec["services"] = services
	return spec, nil
}

// appendArgs puts the arguments that a worker has before those of an override.
func appendArgs(service, patch map[string]any) {
	switch v1alpha1.ComponentType(text(service["componentType"])) {
	case v1alpha1.ComponentTypeWorker, v1alpha1.ComponentTypePrefill, v1alpha1.ComponentTypeDecode:
	default:
		return
	}
	given, ok := at(patch, "extraPodSpec", "mainContainer")["args"].([]any)
	if !ok {
		return
	}
	has, _ := at(service, "extraPodSpec", "mainContainer")["args"].([]any)
	at(patch, "extraPodSpec", "mainContainer")["args"] = slices.Concat(has, given)
}

func at(fields map[string]any, path ...string) map[string]any {
	for _, step := range path {
		fields, _ = fields[step].(map[string]any)
	}
	return fields
}

func exists(kind, name string, known map[string]bool) error {
	if known[name] {
		return nil
	}
	return fmt.Errorf("the generated graph has no %s %q; it has %s", kind, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

func list(value any) []map[string]any {
	items, _ := value.([]any)
	var all []map[string]any
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func join(under, over map[string]string) map[string]string {
	if len(over) == 0 {
		return under
	}
	all := maps.Clone(under)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, over)
	return all
}
