package plan

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

const stableID = "5ab1e000"

// revisionOf is the revision of a manifest whose workers serve as the stable generation.
func revisionOf(t *testing.T, manifest string) string {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := yaml.Unmarshal([]byte(manifest), dgd); err != nil {
		t.Fatal(err)
	}
	r, err := revision.Build(dgd, stableID, 3)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return "---\n" + string(text) + "\n"
}

// rolled is a graph with the status of a rollout: replicas of decode and prefill in the
// stable generation, and in the candidate.
func rolled(t *testing.T, manifest, phase string, stable, candidate [2]int32) string {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	st := v1alpha1.RolloutStatus{
		Revision: 4, Target: "cafe0000", Stable: stableID, Phase: phase, Message: "generation cafe0000 crashed 3 times", Roles: map[string]v1alpha1.RolloutRoleStatus{"decode": {}, "prefill": {}},
	}
	if strings.HasPrefix(phase, "Abort") {
		st.Target, st.Reason = stableID, "CandidateCrashed"
	}
	for id, n := range map[string][2]int32{stableID: stable, "cafe0000": candidate} {
		if n == [2]int32{} {
			continue
		}
		st.Generations = append(st.Generations, v1alpha1.RolloutGeneration{ID: id, Roles: map[string]v1alpha1.RolloutReplicas{
			"decode": {Replicas: n[0], Routable: n[0]}, "prefill": {Replicas: n[1], Routable: n[1]},
		}})
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.DynamoGraphDeploymentStatus{Rollout: &st})
	if err != nil {
		t.Fatal(err)
	}
	object["status"] = status
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAPlanBeginsFromWhatRuns: that is not what the graph asks for while its rollout is
// under way, or was aborted.
func TestAPlanBeginsFromWhatRuns(t *testing.T) {
	a := replace(disaggregated, "runtime:0.8.0", "runtime:1.4.1")
	b := replace(a, "image: \"runtime:1.4.1\", args", "image: \"runtime:1.5.0\", args")
	c := replace(a, "image: \"runtime:1.4.1\", args", "image: \"runtime:1.6.0\", args")
	aborted := rolled(t, b, "Aborted", [2]int32{4, 2}, [2]int32{})
	aborting := rolled(t, b, "Aborting", [2]int32{4, 2}, [2]int32{1, 1})
	shifting := rolled(t, b, "Shifting", [2]int32{2, 2}, [2]int32{2, 1})
	cases := map[string]struct {
		live, desired string
		code          int
	}{
		"aborted-and-taken-back":         {aborted + revisionOf(t, a), a, 2},
		"aborted-and-leaving-taken-back": {aborting + revisionOf(t, a), a, 2},
		"aborted-and-the-same-again":     {aborted + revisionOf(t, a), b, 0},
		"aborted-and-a-frontend-changed": {aborted + revisionOf(t, a), replace(b, "mainContainer: {image: \"runtime:1.4.1\"}", "mainContainer: {image: \"runtime:1.5.0\"}"), 2},
		"aborted-and-another":            {aborted + revisionOf(t, a), c, 2},
		"aborted-without-its-revision":   {aborted, a, 2},
		"rolling-and-taken-back":         {shifting + revisionOf(t, a), a, 2},
		"rolling-and-another":            {shifting + revisionOf(t, a), c, 2},
		"rolling-and-the-same-again":     {shifting + revisionOf(t, a), b, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, code, err := execute(t, c.live, c.desired, "--config", "testdata/generations.yaml")
			if code != c.code {
				t.Errorf("code %d, not %d: %v", code, c.code, err)
			}
			if back := strings.HasSuffix(name, "taken-back"); back && !strings.Contains(out, "no pod is replaced") {
				t.Errorf("a rollout is foretold:\n%s", out)
			}
			golden.Text(t, filepath.Join("testdata", name+".txt"), out)
		})
	}
}
