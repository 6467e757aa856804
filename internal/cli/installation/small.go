package installation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/budget"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// Small is what is shipped, cut down to one machine: one replica, which elects nobody,
// logs for people to read, and metrics that need no token.
func Small() ([]*unstructured.Unstructured, error) {
	objects, err := Operator()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			err = unstructured.SetNestedField(object.Object, int64(1), "spec", "replicas")
		case "ConfigMap":
			err = Configure(object, map[string]any{
				"leaderElection": map[string]any{"enabled": false},
				"server":         map[string]any{"secureMetrics": false},
				"log":            map[string]any{"format": "text"},
			})
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return objects, nil
}

// Configure lays settings over the configuration in a ConfigMap, if it holds one.
func Configure(object *unstructured.Unstructured, settings map[string]any) error {
	text, found, err := unstructured.NestedString(object.Object, "data", configFile)
	if err != nil || !found {
		return err
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return fmt.Errorf("%s: %w", configFile, err)
	}
	overlay(fields, settings)
	changed, err := yaml.Marshal(fields)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(object.Object, string(changed), "data", configFile)
}

func overlay(over, settings map[string]any) {
	for key, value := range settings {
		inner, ok := value.(map[string]any)
		if under, both := over[key].(map[string]any); ok && both {
			overlay(under, inner)
			continue
		}
		over[key] = value
	}
}

// Namespaces are those that the operator of a configuration looks after; none means all.
func Namespaces(configuration *corev1.ConfigMap) ([]string, error) {
	var c config.Scope
	if err := yaml.Unmarshal([]byte(configuration.Data[configFile]), &c); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", configuration.Namespace, configuration.Name, err)
	}
	return c.Namespaces, nil
}

// Configures reports whether a ConfigMap holds a configuration of the operator.
func Configures(held *corev1.ConfigMap) bool { return held.Data[configFile] != "" }

// Budgets are those of GPUs that a configuration says. covers is false of an operator
// that does not look after a namespace.
func Budgets(configuration *corev1.ConfigMap, namespace string) (says budget.Budgets, covers bool, err error) {
	c := config.Default()
	if err := yaml.Unmarshal([]byte(configuration.Data[configFile]), &c); err != nil {
		return says, false, fmt.Errorf("ConfigMap %s/%s: %w", configuration.Namespace, configuration.Name, err)
	}
	return c.Scaling.Budgets(), c.Covers(namespace), nil
}
