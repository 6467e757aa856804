package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// TestKustomizePromisesWhatHelmDoes renders the chart under Kustomize's names and holds
// the two against each other: the same objects, the same pods, the same configuration.
func TestKustomizePromisesWhatHelmDoes(t *testing.T) {
	for scope, c := range map[string]struct {
		overlay string
		values  []string
		// helmAlone and kustomizeAlone are objects that only one of them has, and why is
		// beside each.
		helmAlone, kustomizeAlone []string
	}{
		"cluster": {
			overlay: "operator",
			helmAlone: []string{
				"Lease dynamo.nvidia.com", "Secret webhook-server-cert", // so that they go with the release; with Kustomize their namespace goes
				"ServiceAccount dynamo-operator-component",                                                                 // as the original's chart had it
				"Role dynamo-operator-uninstall", "RoleBinding dynamo-operator-uninstall", "Job dynamo-operator-uninstall", // config/uninstall
			},
			kustomizeAlone: []string{"Namespace dynamo-system", "ClusterRole dynamo-operator-namespace-scope"}, // bound by whoever makes another operator
		},
		"namespace": {
			overlay: "namespaced",
			values: []string{"--set", "dynamo-operator.namespaceRestriction.enabled=true", "--set", "dynamo-operator.namespaceRestriction.targetNamespace=dynamo-graphs", "--set", "dynamo-operator.webhook.enabled=false",
				"--set", "dynamo-operator.controllerManager.leaderElection.id=dynamo.nvidia.com"}, // each release elects under a name of its own
			helmAlone: []string{
				"Lease dynamo.nvidia.com", "Secret webhook-server-cert", "Secret dynamo-operator-metrics-token", // the last is made by whoever installs
				"ServiceAccount dynamo-operator-component",
				"Role dynamo-operator-uninstall", "RoleBinding dynamo-operator-uninstall", "Job dynamo-operator-uninstall",
			},
			kustomizeAlone: []string{"Namespace dynamo-system"},
		},
	} {
		t.Run(scope, func(t *testing.T) {
			text, err := runHelm(t.Context(), "{}", append([]string{"template", "dynamo-operator", platform, "--namespace", "dynamo-system", "--kube-version", "1.37.0"}, c.values...)...)
			if err != nil {
				t.Fatal(err)
			}
			helm := promises(t, text)
			if text, err = cluster.Kubectl(t.Context(), nil, "kustomize", "../../config/"+c.overlay); err != nil {
				t.Fatal(err)
			}
			kustomize := promises(t, text)
			for _, name := range c.helmAlone {
				if helm[name] == nil || kustomize[name] != nil {
					t.Errorf("%s is not Helm's alone", name)
				}
				delete(helm, name)
			}
			for _, name := range c.kustomizeAlone {
				if kustomize[name] == nil || helm[name] != nil {
					t.Errorf("%s is not Kustomize's alone", name)
				}
				delete(kustomize, name)
			}
			if diff := cmp.Diff(helm, kustomize); diff != "" {
				t.Errorf("the installations differ (-Helm +Kustomize):\n%s", diff)
			}
			summary.Line(t, "installations for a %s: %d objects, the same by Helm and by Kustomize", scope, len(kustomize))
		})
	}
}

// promises are the objects of an installation without what only names them: labels, and
// selectors by labels, which a release has more of.
func promises(t *testing.T, text string) map[string]any {
	t.Helper()
	objects, err := installation.Decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetName()
		content := object.DeepCopy().Object
		delete(content, "apiVersion")
		meta := content["metadata"].(map[string]any)
		delete(meta, "labels")
		delete(meta, "annotations")
		strip(content)
		switch {
		case object.GetKind() == "ConfigMap":
			content["data"] = loaded(t, object)
		case strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy"):
			content = map[string]any{"kind": object.GetKind()} // hack/generate.sh copies these
		}
		all[name] = content
	}
	return all
}

// strip takes out what has no other meaning than to name, the init container that the
// chart keeps definitions with, and that a Secret need not be there, which the chart makes.
// Lists of what has names are in their order.
func strip(part any) {
	switch part := part.(type) {
	case map[string]any:
		for _, key := range []string{"labels", "matchLabels", "selector", "podSelector", "annotations", "initContainers", "optional"} {
			delete(part, key)
		}
		if verbs, ok := part["rules"].([]any); ok {
			part["rules"] = rules(verbs)
		}
		for _, inner := range part {
			strip(inner)
		}
	case []any:
		slices.SortStableFunc(part, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
		for _, inner := range part {
			strip(inner)
		}
	}
}

func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// rules are in an order of their own, without the right to write definitions, which is for
// the chart's init container.
func rules(list []any) []string {
	var all []string
	for _, rule := range list {
		fields, ok := rule.(map[string]any)
		if !ok {
			continue
		}
		text, err := json.Marshal(fields)
		if err == nil && !(strings.Contains(string(text), "customresourcedefinitions") && strings.Contains(string(text), "patch")) {
			all = append(all, string(text))
		}
	}
	slices.Sort(all)
	return all
}

// loaded is what the operator makes of its configuration.
func loaded(t *testing.T, object *unstructured.Unstructured) config.Config {
	t.Helper()
	text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POD_NAMESPACE", "dynamo-system")
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	// The chart says these, and an operator that is told nothing knows its own.
	c.Profiler.Image = ""
	// How long certificates live is the original chart's default there.
	c.Certificate.Validity, c.Certificate.AuthorityValidity = config.Default().Certificate.Validity, config.Default().Certificate.AuthorityValidity
	return c
}
