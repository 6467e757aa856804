package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

func TestRelaxPodSpecMakesThePodSpecPartial(t *testing.T) {
	podSpec := schema{
		Required: []string{"containers"},
		Properties: map[string]schema{
			"hostNetwork": {Type: "boolean", Description: "of Kubernetes"},
			"mainContainer": {
				Description: "ours",
				Required:    []string{"name"},
				Properties:  map[string]schema{"image": {Type: "string", Description: "of Kubernetes"}},
			},
		},
	}
	relaxPodSpec(&podSpec)
	want := schema{
		Required: []string{},
		Properties: map[string]schema{
			"hostNetwork": {Type: "boolean"},
			"mainContainer": {
				Description: "ours",
				Required:    []string{},
				Properties:  map[string]schema{"image": {Type: "string"}},
			},
		},
	}
	if diff := cmp.Diff(want, podSpec); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
}

func TestDropDescriptionsKeepsTheTopOne(t *testing.T) {
	list := schema{
		Description: "ours",
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{
			Description: "of Kubernetes",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
				Schema: &schema{Description: "of Kubernetes", Type: "string"},
			},
		}},
	}
	dropDescriptions(&list)
	want := schema{
		Description: "ours",
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &schema{Type: "string"}},
		}},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
}

func TestAtNamesTheFieldThatIsGone(t *testing.T) {
	root := schema{Properties: map[string]schema{"spec": {}}}
	err := at(&root, dropDescriptions, "spec", "services")
	if err == nil || !strings.Contains(err.Error(), `in "spec": no field "services"`) {
		t.Errorf("error is %v, want one that names spec and services", err)
	}
}

func TestRunRefusesADefinitionTooLargeForKubectlApply(t *testing.T) {
	from := t.TempDir()
	large := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " +
		strings.Repeat("x", sizeLimit) + "\nspec: {}\n"
	if err := os.WriteFile(filepath.Join(from, "large.yaml"), []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := run(from, out, out, io.Discard); err == nil {
		t.Error("no error")
	}
}

func TestEscapeForHelmRendersToItself(t *testing.T) {
	got := string(escapeForHelm([]byte("pattern: '{{name}}'")))
	if want := `pattern: '{{ "{{" }}name}}'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
