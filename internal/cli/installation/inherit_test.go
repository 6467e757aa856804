package installation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// TestAnUpdateKeepsWhatSomebodyConfigured because nothing else holds it: whoever lets graphs
// scale to zero, or limits GPUs and hosts, writes that into the operator's ConfigMap.
func TestAnUpdateKeepsWhatSomebodyConfigured(t *testing.T) {
	const begin = "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\n"
	for rule, c := range map[string]struct {
		live    *string
		kept    []string
		beta    bool
		problem string
	}{
		"nothing at first": {beta: true},
		"nothing of what is shipped": {
			live: new(begin + "leaderElection: {enabled: false}\nserver: {secureMetrics: false}\nprofiler: {image: 'dynamo-profiler:old', role: mine}\n"), beta: true,
		},
		"what was added, beside what is shipped and below it": {
			live: new(begin + "activator: {enabled: true}\nscaling: {gpus: 64}\nwebhook: {enabled: false, failurePolicy: Ignore}\n"),
			kept: []string{"activator", "scaling", "webhook.failurePolicy"}, beta: true,
		},
		"that v1beta1 is not served": {
			live: new(begin + "api: {v1beta1: {enabled: false}}\n"), kept: []string{"api"},
		},
		"nothing that the operator would not start with": {
			live: new(begin + "scaling: {gups: 64}\n"), problem: "scaling.gups",
		},
		"nothing that nobody can read": {
			live: new("scaling: ["), problem: "dynamo-system/dynamo-operator-config",
		},
		"nothing of a ConfigMap that is empty": {live: new(""), beta: true},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			b := fake.NewClientBuilder().WithScheme(scheme.New())
			if c.live != nil {
				b = b.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Configuration}, Data: map[string]string{configFile: *c.live}})
			}
			objects, err := Operator()
			if err != nil {
				t.Fatal(err)
			}
			i := Installer{Client: b.Build(), Images: Images{Profiler: "dynamo-profiler:new"}}
			kept, err := i.Inherit(t.Context(), objects)
			if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Fatalf("error %v, want %q", err, c.problem)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.kept, kept); diff != "" {
				t.Error(diff)
			}
			if beta, err := ServesBeta(objects); err != nil || beta != c.beta {
				t.Errorf("v1beta1 is served: %v, %v; want %v", beta, err, c.beta)
			}
			got := configured(t, objects)
			want := map[string]any{"leaderElection.enabled": true, "server.secureMetrics": true, "profiler.image": "dynamo-profiler:new", "profiler.role": "dynamo-operator-profiler", "webhook.enabled": true}
			for path, value := range want {
				outer, inner, _ := strings.Cut(path, ".")
				if found, _, err := unstructured.NestedFieldNoCopy(got, outer, inner); err != nil || found != value && c.live != nil {
					t.Errorf("%s is %v, %v; want %v", path, found, err, value)
				}
			}
		})
	}
}

func configured(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	for _, object := range objects {
		if text, found, err := unstructured.NestedString(object.Object, "data", configFile); err == nil && found {
			var fields map[string]any
			if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
				t.Fatal(err)
			}
			return fields
		}
	}
	t.Fatal("no configuration is shipped")
	return nil
}
