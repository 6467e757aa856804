package main

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// edit applies what no marker can say. Each edit fails if the field it is about
// is gone, so that renaming a field cannot silently drop an edit.
func edit(crd *apiextensionsv1.CustomResourceDefinition) error {
	for i := range crd.Spec.Versions {
		root := crd.Spec.Versions[i].Schema.OpenAPIV3Schema
		var err error
		switch crd.Spec.Names.Kind {
		case "DynamoGraphDeployment":
			err = editGraph(root)
		case "DynamoComponentDeployment":
			err = editService(root, "spec")
		case "DynamoGraphDeploymentRequest":
			err = editRequest(root)
		}
		if err != nil {
			return fmt.Errorf("version %s: %w", crd.Spec.Versions[i].Name, err)
		}
	}
	return nil
}

func editGraph(root *apiextensionsv1.JSONSchemaProps) error {
	// A service written as null is an empty service; without this the API server
	// would drop it from the graph, or refuse it under server-side apply.
	err := at(root, func(service *apiextensionsv1.JSONSchemaProps) {
		service.Nullable = true
	}, "spec", "services", eachValue)
	if err != nil {
		return err
	}
	if err := at(root, dropDescriptions, "spec", "envs"); err != nil {
		return err
	}
	return editService(root, "spec", "services", eachValue)
}

// editService edits the part that a service of a graph and a component share.
func editService(root *apiextensionsv1.JSONSchemaProps, path ...string) error {
	below := func(names ...string) []string { return append(slices.Clone(path), names...) }

	// The descriptions of Kubernetes' own types are three quarters of the file
	// and put it beyond what kubectl apply can store; ours stay.
	for _, coreType := range [][]string{
		below("envs"),
		below("livenessProbe"),
		below("readinessProbe"),
		below("resources", "claims"),
		below("autoscaling", "behavior"),
		below("autoscaling", "metrics"),
		below("eppConfig", "configMapRef"),
	} {
		if err := at(root, dropDescriptions, coreType...); err != nil {
			return err
		}
	}
	if err := at(root, relaxPodSpec, below("extraPodSpec")...); err != nil {
		return err
	}
	return at(root, shapeEndpointPickerConfig, below("eppConfig", "config")...)
}

func editRequest(root *apiextensionsv1.JSONSchemaProps) error {
	for _, name := range []string{"resources", "tolerations"} {
		if err := at(root, dropDescriptions, "spec", "profilingConfig", name); err != nil {
			return err
		}
	}
	return nil
}

// relaxPodSpec makes a pod spec partial: it goes over one that is complete, so
// it may come without containers and its main container without a name.
func relaxPodSpec(podSpec *apiextensionsv1.JSONSchemaProps) {
	main := podSpec.Properties["mainContainer"]
	description := main.Description
	main.Required = without(main.Required, "name")
	podSpec.Properties["mainContainer"] = main
	podSpec.Required = without(podSpec.Required, "containers")

	dropDescriptions(podSpec)
	main = podSpec.Properties["mainContainer"]
	main.Description = description
	podSpec.Properties["mainContainer"] = main
}

// shapeEndpointPickerConfig asks for the two lists that an endpoint picker
// cannot start without, and leaves everything in them to the picker.
func shapeEndpointPickerConfig(config *apiextensionsv1.JSONSchemaProps) {
	open := true
	entry := func(required ...string) apiextensionsv1.JSONSchemaProps {
		properties := make(map[string]apiextensionsv1.JSONSchemaProps, len(required))
		for _, name := range required {
			properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return apiextensionsv1.JSONSchemaProps{
			Type:                   "object",
			Properties:             properties,
			Required:               required,
			XPreserveUnknownFields: &open,
		}
	}
	list := func(item apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		atomic := "atomic"
		return apiextensionsv1.JSONSchemaProps{
			Type:      "array",
			Items:     &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item},
			XListType: &atomic,
		}
	}
	profile := entry("name")
	profile.Properties["plugins"] = list(entry("pluginRef"))
	profile.Required = append(profile.Required, "plugins")
	config.Properties = map[string]apiextensionsv1.JSONSchemaProps{
		"plugins":            list(entry("type")),
		"schedulingProfiles": list(profile),
	}
	config.Required = []string{"plugins", "schedulingProfiles"}
}
