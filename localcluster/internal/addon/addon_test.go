package addon

import (
	"encoding/base64"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
)

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		given []string
		want  []string
		err   error
	}{
		"nothing asked for is nothing":     {},
		"the order is that of starting":    {given: []string{"volcano", "grove"}, want: []string{"grove", "volcano"}},
		"twice is once":                    {given: []string{"lws", "lws"}, want: []string{"lws"}},
		"an unknown name spoils the whole": {given: []string{"lws", "knative"}, err: ErrUnknown},
		"names have a case":                {given: []string{"LWS"}, err: ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Choose(tc.given)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Choose(%q) = %v, want %v", tc.given, err, tc.err)
			}
			var got []string
			for _, a := range set {
				got = append(got, a.name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Choose(%q) (-want +got):\n%s", tc.given, diff)
			}
		})
	}
}

func TestEveryProgramHasACheck(t *testing.T) {
	for _, a := range catalogue {
		if has := a.component != ""; has != (a.program != nil) || has != (a.check != nil) {
			t.Errorf("add-on %s: component, program and check belong together", a.name)
		}
	}
}

func TestParseManifest(t *testing.T) {
	objects, err := parseManifest([]byte(`---
apiVersion: v1
kind: A
metadata: {name: first, creationTimestamp: null}
status: {phase: left over}
---
# nothing but a comment
---
apiVersion: v1
kind: B
metadata: {name: second}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	for _, object := range objects {
		got = append(got, object.Object)
	}
	want := []map[string]any{
		{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "first"}},
		{"apiVersion": "v1", "kind": "B", "metadata": map[string]any{"name": "second"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parseManifest() (-want +got):\n%s", diff)
	}
}

func TestSchemasComeWithoutProse(t *testing.T) {
	objects, err := parseManifest([]byte(`
kind: CustomResourceDefinition
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: what it is
        properties:
          description: {type: string, description: a field of that name stays}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"kind": kindCRD, "spec": map[string]any{"versions": []any{map[string]any{
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"properties": map[string]any{"description": map[string]any{"type": "string"}},
		}},
	}}}}
	if diff := cmp.Diff(want, objects[0].Object); diff != "" {
		t.Errorf("parsed kind (-want +got):\n%s", diff)
	}
}

func TestLWSWebhooksAreServedByAProcessOfTheCluster(t *testing.T) {
	dir := clusterdir.Dir(t.TempDir())
	c := controlplane.Cluster{Dir: dir, State: clusterdir.State{Subnet: 20}, PKI: pki.Bundle{CA: dir.Kubeconfig()}}
	if err := os.WriteFile(c.PKI.CA, []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := parseManifest([]byte(`
kind: MutatingWebhookConfiguration
metadata: {name: mutating}
webhooks:
- name: sets
  clientConfig: {service: {name: s, namespace: n, path: /sets}}
  rules: [{resources: [leaderworkersets]}]
- name: pods
  clientConfig: {service: {name: s, namespace: n, path: /pods}}
  rules: [{resources: [pods]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if keep, err := adaptLWS(c, objects[0]); err != nil || !keep {
		t.Fatalf("adaptLWS() = %v, %v", keep, err)
	}
	ca := base64.StdEncoding.EncodeToString([]byte("authority"))
	want := map[string]any{
		"kind": kindMutatingWebhooks, "metadata": map[string]any{"name": "lws-mutating"},
		"webhooks": []any{
			map[string]any{
				"name":         "sets",
				"clientConfig": map[string]any{"url": "https://127.20.255.1:9443/sets", "caBundle": ca},
				"rules":        []any{map[string]any{"resources": []any{"leaderworkersets"}}},
			},
			map[string]any{
				"name":         "pods",
				"clientConfig": map[string]any{"url": "https://127.20.255.1:9443/pods", "caBundle": ca},
				"rules":        []any{map[string]any{"resources": []any{"pods"}}},
				"objectSelector": map[string]any{"matchExpressions": []any{
					map[string]any{"key": lwsSetLabel, "operator": "Exists"},
				}},
			},
		},
	}
	if diff := cmp.Diff(want, objects[0].Object); diff != "" {
		t.Errorf("adapted webhooks (-want +got):\n%s", diff)
	}
}
