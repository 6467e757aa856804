// Package validationcases is the casebook: valid and invalid objects of our API,
// with the expected verdict. Schema, webhook, controller and CLI are all held
// against the same cases.
package validationcases

import (
	"bytes"
	"embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

//go:embed testdata/*.yaml
var files embed.FS

// Case is one object and the verdict on it.
type Case struct {
	// Rule is what the case shows; it is its name.
	Rule string `json:"rule"`
	// Kind by its short name: dgd, dcd, dm, dgdr, dgdsa.
	Kind string `json:"kind"`
	// Name of the object; one is made up if it is empty.
	Name string `json:"name"`
	// Annotations and Spec of it. Spec and Name may use ${x*N}$ for x
	// repeated N times, with # for the number.
	Annotations map[string]string `json:"annotations"`
	Spec        string            `json:"spec"`
	// Refused are the paths of fields that a refusal names; none means admitted.
	Refused []string `json:"refused"`
	// BySchema says that the API server refuses before anybody of us is asked;
	// it then spells the keys of maps with dots.
	BySchema bool `json:"bySchema"`
}

var kinds = map[string]string{
	"dgd": v1alpha1.KindDynamoGraphDeployment, "dcd": v1alpha1.KindDynamoComponentDeployment,
	"dm": v1alpha1.KindDynamoModel, "dgdr": v1alpha1.KindDynamoGraphDeploymentRequest,
	"dgdsa": v1alpha1.KindDynamoGraphDeploymentScalingAdapter,
}

// Valid are objects that are admitted.
func Valid() ([]Case, error) { return load("valid.yaml") }

// Invalid are objects that are refused.
func Invalid() ([]Case, error) { return load("invalid.yaml") }

func load(name string) ([]Case, error) {
	text, err := files.ReadFile("testdata/" + name)
	if err != nil {
		return nil, err
	}
	var cases []Case
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	seen := map[string]bool{}
	for i, c := range cases {
		if kinds[c.Kind] == "" || c.Rule == "" || seen[c.Rule] {
			return nil, fmt.Errorf("read %s: case %d %q has no kind, no rule or one that is taken", name, i, c.Rule)
		}
		seen[c.Rule] = true
	}
	return cases, nil
}

// Object is the object of a case, in a namespace.
func (c Case) Object(namespace, name string) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON([]byte(repeat(c.Spec)))
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Rule, err)
	}
	var spec any
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Rule, err)
	}
	if c.Name != "" {
		name = repeat(c.Name)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": kinds[c.Kind],
		"metadata": map[string]any{"name": name, "namespace": namespace},
	}}
	if spec != nil {
		object.Object["spec"] = spec
	}
	if len(c.Annotations) > 0 {
		object.SetAnnotations(c.Annotations)
	}
	return object, nil
}

// repeat writes out ${x*N}$.
func repeat(text string) string {
	var out bytes.Buffer
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		inside, after, closed := strings.Cut(rest, "}$")
		var n int
		if what, times, ok := cutLast(inside, "*"); ok && closed {
			if _, err := fmt.Sscanf(times, "%d", &n); err == nil {
				for i := range n {
					out.WriteString(strings.ReplaceAll(what, "#", fmt.Sprint(i)))
				}
			}
		}
		text = after
	}
}

func cutLast(text, by string) (before, after string, found bool) {
	i := strings.LastIndex(text, by)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(by):], true
}
