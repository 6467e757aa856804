// Package pickerconfig completes the inline configuration of an endpoint picker.
package pickerconfig

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Complete gives an inline configuration its kind, so that the picker reads it as
// it reads a file, and each plugin a name, if an empty one.
func Complete(e *v1alpha1.EPPConfig) (*v1alpha1.EPPConfig, error) {
	if e == nil || e.Config == nil {
		return e, nil
	}
	config, err := complete(e.Config.Raw)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(config)
	return &v1alpha1.EPPConfig{Config: &runtime.RawExtension{Raw: raw}, ConfigMapRef: e.ConfigMapRef}, err
}

// File is the same as a file, which spells out what is not set.
func File(inline []byte) (string, error) {
	config, err := complete(inline)
	if err != nil {
		return "", err
	}
	spell(config["plugins"], "parameters", nil)
	for _, profile := range items(config["schedulingProfiles"]) {
		spell(profile["plugins"], "weight", nil)
	}
	text, err := yaml.Marshal(config)
	return string(text), err
}

func complete(inline []byte) (map[string]any, error) {
	config := map[string]any{}
	if err := json.Unmarshal(inline, &config); err != nil {
		return nil, err
	}
	config["apiVersion"] = "inference.networking.x-k8s.io/v1alpha1"
	config["kind"] = "EndpointPickerConfig"
	spell(config["plugins"], "name", "")
	return config, nil
}

// spell sets a member of each item of a list that does not have it.
func spell(list any, member string, value any) {
	for _, item := range items(list) {
		if _, set := item[member]; !set {
			item[member] = value
		}
	}
}

// items are the maps in a list; the schema admits no other items.
func items(list any) []map[string]any {
	var maps []map[string]any
	all, _ := list.([]any)
	for _, item := range all {
		if m, ok := item.(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	return maps
}
