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
		below("frontendSidecar", "envs"),
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

func editBetaGraph(root *apiextensionsv1.JSONSchemaProps) error {
	if err := at(root, dropDescriptions, "spec", "env"); err != nil {
		return err
	}
	// A component that stands alone is named after its object; in a graph the
	// name is the key.
	err := at(root, func(component *apiextensionsv1.JSONSchemaProps) {
		component.Required = append(component.Required, "name")
	}, "spec", "components", eachValue)
	if err != nil {
		return err
	}
	return editComponent(root, "spec", "components", eachValue)
}

// editComponent edits the part that a component of a graph and one that stands
// alone share.
func editComponent(root *apiextensionsv1.JSONSchemaProps, path ...string) error {
	below := func(names ...string) []string { return append(slices.Clone(path), names...) }
	if err := at(root, editPodTemplate, below("podTemplate")...); err != nil {
		return err
	}
	if err := at(root, dropDescriptions, below("eppConfig", "configMapRef")...); err != nil {
		return err
	}
	return at(root, shapeEndpointPickerConfig, below("eppConfig", "config")...)
}

func editBetaRequest(root *apiextensionsv1.JSONSchemaProps) error {
	job := []string{"spec", "overrides", "profilingJob"}
	// It goes over a job that is complete, so it need not be.
	err := at(root, func(job *apiextensionsv1.JSONSchemaProps) { job.Required = without(job.Required, "template") }, job...)
	if err != nil {
		return err
	}
	err = at(root, func(spec *apiextensionsv1.JSONSchemaProps) { spec.Required = without(spec.Required, "containers") }, append(job, "template", "spec")...)
	if err != nil {
		return err
	}
	if err := at(root, keepMetadata, append(job, "template", "metadata")...); err != nil {
		return err
	}
	return at(root, dropDescriptions, job...)
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
