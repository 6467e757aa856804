package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

func TestPublishedManifestsAreAdmitted(t *testing.T) {
	documents := corpus.OfGroup(t, v1alpha1.GroupName)
	server := needServer(t)

	ways := map[string][]string{
		"kubectl apply":               {"apply", "--validate=strict", "-f", "-"},
		"kubectl apply --server-side": {"apply", "--validate=strict", "-f", "-", "--server-side"},
	}
	for way, args := range ways {
		t.Run(way, func(t *testing.T) {
			// One namespace for each document: several share a name.
			prefix := server.namespace(t)
			var namespaces, objects strings.Builder
			for i, document := range documents {
				namespace := fmt.Sprintf("%s-%d", prefix, i)
				fmt.Fprintf(&namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n---\n", namespace)
				object := document.Object.DeepCopy()
				object.SetNamespace(namespace)
				raw, err := object.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&objects, "%s\n---\n", raw)
			}
			if _, stderr, err := server.kubectl(t.Context(), namespaces.String(), "create", "-f", "-"); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}

			stdout, stderr, err := server.kubectl(t.Context(), objects.String(), args...)
			admitted := strings.Count(stdout, "\n")
			summary.Line(t, "%s: admitted %d of %d published documents", way, admitted, len(documents))
			if err != nil || stderr != "" || admitted != len(documents) {
				t.Errorf("%v: %s", err, stderr)
			}

			// Applying again changes nothing: no generation moves.
			if _, stderr, err := server.kubectl(t.Context(), objects.String(), args...); err != nil {
				t.Fatalf("applied again: %v: %s", err, stderr)
			}
			stdout, stderr, err = server.kubectl(t.Context(), "", "get", "dgd,dm,dgdr", "--all-namespaces", "--no-headers",
				"-o", "custom-columns=NAMESPACE:.metadata.namespace,GENERATION:.metadata.generation")
			if err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			for line := range strings.Lines(stdout) {
				fields := strings.Fields(line)
				if strings.HasPrefix(fields[0], prefix+"-") && fields[1] != "1" {
					t.Errorf("applied again, %s is at generation %s", fields[0], fields[1])
				}
			}
		})
	}
}
