package main

import (
	"errors"
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
		switch crd.Spec.Names.Kind + "/" + crd.Spec.Versions[i].Name {
		case "DynamoGraphDeployment/v1alpha1":
			err = editGraph(root)
		case "DynamoComponentDeployment/v1alpha1":
			err = editService(root, "spec")
		case "DynamoGraphDeploymentRequest/v1alpha1":
			err = editRequest(root)
		case "DynamoCheckpoint/v1alpha1":
			err = at(root, editPodTemplate, "spec", "job", "podTemplateSpec")
		case "DynamoGraphDeployment/v1beta1":
			err = editBetaGraph(root)
		case "DynamoComponentDeployment/v1beta1":
			err = editComponent(root, "spec")
		case "DynamoGraphDeploymentRequest/v1beta1":
			err = editBetaRequest(root)
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
	nullable := func(service *apiextensionsv1.JSONSchemaProps) { service.Nullable = true }
	return errors.Join(
		at(root, nullable, "spec", "services", eachValue),
		at(root, dropDescriptions, "spec", "envs"),
		editService(root, "spec", "services", eachValue))
}

// editService edits the part that a service of a graph and a component share.
func editService(root *apiextensionsv1.JSONSchemaProps, path ...string) error {
	below := func(names ...string) []string { return append(slices.Clone(path), names...) }

	var errs []error
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
		below("frontendSidecar", "envs"),
	} {
		errs = append(errs, at(root, dropDescriptions, coreType...))
	}
	return errors.Join(append(errs, at(root, relaxPodSpec, below("extraPodSpec")...),
		at(root, shapeEndpointPickerConfig, below("eppConfig", "config")...))...)
}

func editRequest(root *apiextensionsv1.JSONSchemaProps) error {
	return errors.Join(
		at(root, dropDescriptions, "spec", "profilingConfig", "resources"), at(root, dropDescriptions, "spec", "profilingConfig", "tolerations"))
}

func editBetaGraph(root *apiextensionsv1.JSONSchemaProps) error {
	// A component that stands alone is named after its object; in a graph the
	// name is the key.
	named := func(component *apiextensionsv1.JSONSchemaProps) {
		component.Required = append(component.Required, "name")
	}
	return errors.Join(
		at(root, dropDescriptions, "spec", "env"),
		at(root, named, "spec", "components", eachValue),
		editComponent(root, "spec", "components", eachValue))
}

// editComponent edits the part that a component of a graph and one that stands
// alone share.
func editComponent(root *apiextensionsv1.JSONSchemaProps, path ...string) error {
	below := func(names ...string) []string { return append(slices.Clone(path), names...) }
	return errors.Join(
		at(root, editPodTemplate, below("podTemplate")...),
		at(root, dropDescriptions, below("eppConfig", "configMapRef")...),
		at(root, shapeEndpointPickerConfig, below("eppConfig", "config")...))
}

func editBetaRequest(root *apiextensionsv1.JSONSchemaProps) error {
	job := []string{"spec", "overrides", "profilingJob"}
	template := append(slices.Clone(job), "template")
	// It goes over a job that is complete, so it need not be.
	optional := func(name string) func(*apiextensionsv1.JSONSchemaProps) {
		return func(schema *apiextensionsv1.JSONSchemaProps) { schema.Required = without(schema.Required, name) }
	}
	return errors.Join(
		at(root, optional("template"), job...),
		at(root, optional("containers"), append(slices.Clone(template), "spec")...),
		at(root, keepMetadata, append(slices.Clone(template), "metadata")...),
		at(root, dropDescriptions, job...))
}

// editPodTemplate lets a template keep its metadata, which controller-gen leaves
// without fields, so that a server would drop them.
func editPodTemplate(template *apiextensionsv1.JSONSchemaProps) {
	metadata := template.Properties["metadata"]
	keepMetadata(&metadata)
	template.Properties["metadata"] = metadata
	dropDescriptions(template)
}

// keepMetadata gives the metadata of a template the fields that templates have.
func keepMetadata(metadata *apiextensionsv1.JSONSchemaProps) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	texts := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &text}}
	metadata.Properties = map[string]apiextensionsv1.JSONSchemaProps{
		"annotations": texts,
		"labels":      texts,
		"finalizers":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
		"name":        text,
		"namespace":   text,
	}
}

// relaxPodSpec makes a pod spec partial: it goes over one that is complete, so
// it may come without containers and its main container without a name.
func relaxPodSpec(podSpec *apiextensionsv1.JSONSchemaProps) {
	main := podSpec.Properties["mainContainer"]
	description := main.Description
	main.Required = without(main.Required, "name")
	podSpec.Properties["mainContainer"] = main
	podSpec.Required = without(podSpec.Required, "containers")
	// Published manifests say that there are none; server-side apply refuses a
	// null elsewhere.
	if containers, ok := podSpec.Properties["containers"]; ok {
		containers.Nullable = true
		podSpec.Properties["containers"] = containers
	}

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
