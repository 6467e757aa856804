package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// TestAJobThatDiffersIsAnother because the template of a Job cannot be changed: with the
// name of the one that is there every upgrade would be refused from then on.
func TestAJobThatDiffersIsAnother(t *testing.T) {
	t.Parallel()
	publishing := func(values string) *unstructured.Unstructured {
		text, err := template(t.Context(), "dynamo-operator: {namespaceRestriction: {enabled: true}, webhook: {enabled: false}, converter: {enabled: true}"+values+"}", "--show-only", "templates/converter.yaml")
		if err != nil {
			t.Fatal(err)
		}
		objects, err := installation.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if object.GetKind() == "Job" && len(object.GetAnnotations()) == 0 { // the other is a hook, which Helm deletes
				return object
			}
		}
		t.Fatalf("no Job with %s:\n%s", values, text)
		return nil
	}
	usual := publishing("")
	if diff := cmp.Diff(usual, publishing("")); diff != "" {
		t.Error(diff)
	}
	for rule, values := range map[string]string{
		"another image":        ", controllerManager: {manager: {image: {tag: v2}}}",
		"other arguments":      ", kubernetesClusterDomain: corp.local",
		"other resources":      ", controllerManager: {manager: {resources: {limits: {memory: 2Gi}}}}",
		"other nodes":          ", controllerManager: {tolerations: [{operator: Exists}]}",
		"another pull secret":  ", imagePullSecrets: [{name: registry}]",
		"another pull policy":  ", controllerManager: {manager: {image: {pullPolicy: Always}}}",
		"another priority":     ", controllerManager: {priorityClassName: system-cluster-critical}",
		"other capabilities":   ", controllerManager: {manager: {containerSecurityContext: {runAsGroup: 65532}}}",
		"other node selectors": ", controllerManager: {nodeSelector: {pool: system}}",
	} {
		job := publishing(values)
		if cmp.Equal(usual.Object["spec"], job.Object["spec"]) {
			t.Errorf("%s: the Job is the same", rule)
		}
		if job.GetName() == usual.GetName() {
			t.Errorf("%s: the Job is changed in place, which API servers refuse", rule)
		}
	}
}
