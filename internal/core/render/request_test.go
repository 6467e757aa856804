package render_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

// TestRequestGolden renders what profiles for each request: as a file and an
// exit status if the profiler is ours, as others know it if it is not.
func TestRequestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/request/*/request.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	policy := requestplan.Policy{Image: "dynamo-profiler:dev", Deadline: time.Hour, Scope: validation.Scope{ClusterWide: true}}
	p := render.Profiling{
		Image: policy.Image, Role: "dynamo-operator-profiler",
		PullSecrets: snapshot.PullSecrets{"registry.example": {"pull-a"}},
	}
	for _, path := range cases {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := yaml.YAMLToJSON(text)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := conversion.Convert(raw, v1alpha1.SchemeGroupVersion.String())
			if err != nil {
				t.Fatal(err)
			}
			r := &v1alpha1.DynamoGraphDeploymentRequest{}
			if err := yaml.UnmarshalStrict(stored.JSON, r); err != nil {
				t.Fatal(err)
			}
			r.Namespace, r.Generation = "team", 1
			now := time.Unix(0, 0)
			first := requestplan.Next(r, requestplan.Sight{Nodes: []requestplan.Node{{Product: "NVIDIA-H200", GPUs: 8, MemoryMiB: 143771}}}, policy, now)
			second := requestplan.Next(r, requestplan.Sight{Record: &first.Record}, policy, now)
			if second.Wants != requestplan.Job {
				t.Fatalf("the request is not profiled: %+v, then %+v", first.Findings, second.Findings)
			}
			objects := manifests(t, level{r, render.Request(r, second, p)})
			golden.Manifests(t, filepath.Join(dir, "objects.yaml"), objects)
		})
	}
}
