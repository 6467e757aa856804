package installation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// Inherit adds to the configuration among the objects what somebody has added to that of
// the operator which is there, so that an update turns nothing off: budgets, allowed hosts,
// scaling to zero. What is shipped counts more. It returns the settings that were kept.
// One that this version does not know is an error, because its operator would not start.
func (i Installer) Inherit(ctx context.Context, objects []*unstructured.Unstructured) (kept []string, err error) {
	live := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: cmp.Or(i.Home, Namespace), Name: Configuration}
	if err := i.Client.Get(ctx, key, live); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	for _, object := range objects {
		if object.GetKind() != "ConfigMap" || object.GetName() != Configuration {
			continue
		}
		if err := i.Images.set(object); err != nil { // an update is to another image
			return nil, err
		}
		if kept, err = inherit(object, live.Data[configFile]); err != nil {
			return nil, fmt.Errorf("ConfigMap %s, which the update keeps: %w", key, err)
		}
	}
	return kept, nil
}

func inherit(object *unstructured.Unstructured, live string) ([]string, error) {
	text, _, err := unstructured.NestedString(object.Object, "data", configFile)
	if err != nil {
		return nil, err
	}
	var shipped, had map[string]any
	if err := yaml.Unmarshal([]byte(text), &shipped); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal([]byte(live), &had); err != nil {
		return nil, err
	}
	kept := add(shipped, had, "")
	if len(kept) == 0 {
		return nil, nil
	}
	joined, err := yaml.Marshal(shipped)
	if err != nil {
		return nil, err
	}
	if err := config.Check(joined); err != nil {
		return nil, err
	}
	return kept, unstructured.SetNestedField(object.Object, string(joined), "data", configFile)
}

// add puts into settings what they lack of others, and returns what that is, by path.
func add(settings, others map[string]any, at string) (added []string) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		path := at + name
		have, known := settings[name]
		inner, nested := have.(map[string]any)
		more, both := others[name].(map[string]any)
		switch {
		case !known:
			settings[name] = others[name]
			added = append(added, path)
		case nested && both:
			added = append(added, add(inner, more, path+".")...)
		}
	}
	return added
}

// ServesBeta reports whether the configuration among the objects has v1beta1 served.
func ServesBeta(objects []*unstructured.Unstructured) (bool, error) {
	c := config.Default()
	for _, object := range objects {
		text, found, err := unstructured.NestedString(object.Object, "data", configFile)
		if err != nil || !found || object.GetKind() != "ConfigMap" {
			continue
		}
		if err := yaml.Unmarshal([]byte(text), &c); err != nil {
			return false, fmt.Errorf("%s of ConfigMap %s: %w", configFile, object.GetName(), err)
		}
	}
	return c.API.V1beta1.Enabled, nil
}
