package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// DeploymentConfigEnv is a variable by which graphs that were packaged from
// Python carry settings of their services.
const DeploymentConfigEnv = "DYN_DEPLOYMENT_CONFIG"

// ApplyDeploymentConfig carries the settings that a service's environment holds
// for it into its spec: replicas where it has none, resources over its own. A
// frontend is told the one port that it can be reached at.
func ApplyDeploymentConfig(name string, s v1alpha1.SharedSpec) (v1alpha1.SharedSpec, error) {
	at := slices.IndexFunc(s.Envs, func(v corev1.EnvVar) bool { return v.Name == DeploymentConfigEnv && v.ValueFrom == nil })
	if at < 0 {
		return s, nil
	}
	var services map[string]map[string]any
	if err := json.Unmarshal([]byte(s.Envs[at].Value), &services); err != nil {
		return s, fmt.Errorf("environment variable %s is no JSON object of services: %w", DeploymentConfigEnv, err)
	}
	own, found := services[name]
	if !found || own == nil {
		return s, nil
	}
	if s.ComponentType == v1alpha1.ComponentTypeFrontend {
		own["port"] = 8000
		text, err := json.Marshal(services)
		if err != nil {
			return s, fmt.Errorf("environment variable %s: %w", DeploymentConfigEnv, err)
		}
		s.Envs = slices.Clone(s.Envs)
		s.Envs[at].Value = string(text)
	}
	args, err := serviceArguments(own)
	if err != nil {
		return s, fmt.Errorf("environment variable %s: service %s: %w", DeploymentConfigEnv, name, err)
	}
	if s.Replicas == nil {
		s.Replicas = args.Workers
	}
	if args.Resources != nil {
		s.Resources = overlayResources(s.Resources, *args.Resources)
	}
	return s, nil
}

type serviceArgs struct {
	Workers   *int32                 `json:"workers"`
	Resources *v1alpha1.ResourceItem `json:"resources"`
}

// serviceArguments reads the settings of one service, however their key is
// spelled.
func serviceArguments(service map[string]any) (args serviceArgs, err error) {
	for key, value := range service {
		if !strings.EqualFold(key, "ServiceArgs") {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return args, err
		}
		if err := json.Unmarshal(text, &args); err != nil {
			return args, fmt.Errorf("ServiceArgs: %w", err)
		}
	}
	return args, nil
}

func overlayResources(r *v1alpha1.Resources, over v1alpha1.ResourceItem) *v1alpha1.Resources {
	merged := &v1alpha1.Resources{}
	if r != nil {
		merged = r.DeepCopy()
	}
	for _, target := range []**v1alpha1.ResourceItem{&merged.Requests, &merged.Limits} {
		if *target == nil {
			*target = &v1alpha1.ResourceItem{}
		}
		t := *target
		if over.CPU != "" {
			t.CPU = over.CPU
		}
		if over.Memory != "" {
			t.Memory = over.Memory
		}
		if over.GPU != "" {
			t.GPU = over.GPU
		}
		if over.Custom != nil {
			t.Custom = over.Custom
		}
	}
	return merged
}
