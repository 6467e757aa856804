package compat

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// requestTarget is the percentage of leaves of profiling Jobs that have to be equal.
const requestTarget = 98

// requestReason is why a profiling Job differs on purpose. Its title stands on the
// page of compatibility.
type requestReason struct {
	title string
	leaf  *regexp.Regexp
	// manifest is where it holds; empty means everywhere.
	manifest string
	// aside marks what is another program's, or the server's, and not counted.
	aside bool
}

// requestReasons are tried in order.
var requestReasons = []*requestReason{
	{
		title: "The contract of a profiler follows its image", manifest: "v0.9.1__benchmarks__profiler__deploy__profile_sla_moe_dgdr", aside: true,
		leaf: exactly(`.*`),
	},
	{title: "The collector is ours", aside: true, leaf: exactly(`spec\.template\.spec\.containers\[output-copier\]\..*`)},
	{title: "Overrides of the graph are merged by the operator", aside: true, leaf: exactly(
		`spec\.template\.spec\.(initContainers\[(dgd-override-installer|0)\].*|volumes\[dgd-override-tool\].*|volumes\.\(order\))` +
			`|spec\.template\.spec\.containers\[profiler\]\.(env\[DYNAMO_DGD_APPLY_OVERRIDES_BIN\].*|volumeMounts\[/opt/dynamo/bin\].*|(env|volumeMounts)\.\(order\)|args\[1\]\.overrides\.dgd.*)`)},
	{title: "The Hugging Face token is optional", leaf: exactly(`spec\.template\.spec\.containers\[profiler\]\.env\[HUGGING_FACE_HUB_TOKEN\]\.valueFrom\.secretKeyRef\.optional`)},
	{title: "A profiler's last lines of log are kept", leaf: exactly(`spec\.template\.spec\.containers\[profiler\]\.terminationMessagePolicy`)},
	{title: "Profiling has a deadline", leaf: exactly(`spec\.activeDeadlineSeconds`)},
	{title: "Objects lead back to their request", leaf: exactly(`metadata\.(labels\[dgdr\.nvidia\.com/.*\]|annotations.*)`)},
}

// serverAssigned are values that the API server filled in where the original said
// nothing.
var serverAssigned = map[string]string{
	"spec.completionMode": `"NonIndexed"`, "spec.completions": `1`, "spec.manualSelector": `false`, "spec.parallelism": `1`,
	"spec.podReplacementPolicy": `"TerminatingOrFailed"`, "spec.suspend": `false`,
	"spec.template.spec.dnsPolicy": `"ClusterFirst"`, "spec.template.spec.schedulerName": `"default-scheduler"`,
	"spec.template.spec.terminationGracePeriodSeconds": `30`,
}

// serverLeaf matches the rest of those: labels by which a Job finds its pods, and
// what a container and a volume have by default.
var serverLeaf = exactly(`spec\.selector\..*|spec\.template\.metadata.*|spec\.template\.spec\.serviceAccount` +
	`|spec\.template\.spec\.(init)?[cC]ontainers\[.*\]\.(imagePullPolicy|terminationMessagePath|resources)|.*\.defaultMode|metadata\.ownerReferences.*`)

// TestProfilingJobsOfRequests holds the Jobs that we make of requests against those
// that 1.4.1 made of the same. What is told to the profiler is compared value by
// value.
func TestProfilingJobsOfRequests(t *testing.T) {
	dir := requestRecordings(t)
	var sum count
	jobs, found := 0, map[*requestReason]int{}
	for _, manifest := range requestManifests(t, dir) {
		theirs := recordedOf(t, dir, manifest)
		ours := requestObjects(t, filepath.Join(dir, "manifests", manifest+".yaml"), theirs)
		if theirs["Job"] == nil {
			// An init container without an image, which the API server refused.
			if ours["Job"] == nil {
				t.Errorf("%s: no Job", manifest)
			}
			summary.Line(t, "profiling Jobs: %s: the original failed to make one, we do", manifest)
			continue
		}
		jobs++
		for _, kind := range []string{"Job", "RoleBinding", "ServiceAccount"} {
			if ours[kind] == nil {
				t.Errorf("%s: no %s", manifest, kind)
				continue
			}
			compareRequest(t, manifest, kind, leavesOfRequest(theirs[kind]), leavesOfRequest(ours[kind]), &sum, found)
		}
	}
	summary.Line(t, "profiling Jobs of requests: %d of %d leaves equal to 1.4.1's (%s) in %d Jobs and their accounts", sum.equal, sum.leaves, share(sum), jobs)
	if jobs == 0 || sum.percent() < requestTarget {
		t.Errorf("of %d Jobs %.1f %% of the leaves are equal, want %d", jobs, sum.percent(), requestTarget)
	}
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requestReasons {
		if found[r] == 0 {
			t.Errorf("reason %q explains no difference: remove it", r.title)
		}
		if !strings.Contains(string(page), r.title) {
			t.Errorf("docs/compatibility.md does not explain %q", r.title)
		}
	}
}

// requestRecordings is the folder of recorded requests; the test is skipped where
// there is none.
func requestRecordings(t *testing.T) string {
	t.Helper()
	_, self, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(self), "..", "..", "..", "shared", "reference-1.4", "requests")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skip("no recordings of requests of 1.4.1 here")
	}
	return dir
}

func requestManifests(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	root := filepath.Join(dir, "manifests")
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" {
			name, err := filepath.Rel(root, strings.TrimSuffix(path, ".yaml"))
			all = append(all, name)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func recordedOf(t *testing.T, dir, manifest string) map[string]map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "reference", manifest+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	by := map[string]map[string]any{}
	for _, object := range all {
		by[object["kind"].(string)] = object
	}
	return by
}

// requestObjects is what we make of a manifest before its profiler runs: written as
// a server would store it, on the hardware of the recording.
func requestObjects(t *testing.T, path string, recorded map[string]map[string]any) map[string]map[string]any {
	t.Helper()
	r := stored(t, path)
	namespace, _, _ := unstructured.NestedString(recorded[v1alpha1.KindDynamoGraphDeploymentRequest], "metadata", "namespace")
	r.Namespace, r.Generation, r.UID = namespace, 1, "<uid>"
	policy := requestplan.Policy{
		Image: "dynamo-profiler:dev", DefaultImage: "nvcr.io/nvidia/ai-dynamo/dynamo-planner:1.4.1", Deadline: time.Hour, Scope: validation.Scope{ClusterWide: true},
	}
	node := requestplan.Node{Product: "NVIDIA-H200", GPUs: 8, MemoryMiB: 143771}
	first := requestplan.Next(r, requestplan.Sight{Nodes: []requestplan.Node{node, node}}, policy, time.Unix(0, 0))
	second := requestplan.Next(r, requestplan.Sight{Record: &first.Record}, policy, time.Unix(0, 0))
	if second.Wants != requestplan.Job {
		t.Fatalf("%s is not profiled: %+v, then %+v", path, first.Findings, second.Findings)
	}
	all := map[string]map[string]any{}
	for _, wanted := range render.Request(r, second, render.Profiling{Image: policy.Image, Role: "prof-cr", NATS: "nats://nats:4222"}) {
		fields, err := k8sruntime.DefaultUnstructuredConverter.ToUnstructured(wanted.Object)
		if err != nil {
			t.Fatal(err)
		}
		all[reflect.TypeOf(wanted.Object).Elem().Name()] = fields
	}
	return all
}

// stored reads a request as a server keeps it.
func stored(t *testing.T, path string) *v1alpha1.DynamoGraphDeploymentRequest {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	version := conversion.Alpha
	if fields["apiVersion"] == v1beta1.SchemeGroupVersion.String() {
		version = conversion.Beta
	}
	schema, known, err := crdschema.OfVersion(v1alpha1.KindDynamoGraphDeploymentRequest, version)
	if err != nil || !known {
		t.Fatalf("no schema of %s: %v", version, err)
	}
	schema.Default(fields)
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversion.Convert(raw, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	r := &v1alpha1.DynamoGraphDeploymentRequest{}
	if err := json.Unmarshal(result.JSON, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// leavesOfRequest opens what the profiler is told, and leaves out what no operator
// decided.
func leavesOfRequest(object map[string]any) map[string]string {
	all := meaningful(&unstructured.Unstructured{Object: object})
	const told = "spec.template.spec.containers[profiler].args[1]"
	if text, found := all[told]; found {
		var raw string
		var fields map[string]any
		if json.Unmarshal([]byte(text), &raw) == nil && json.Unmarshal([]byte(raw), &fields) == nil {
			delete(all, told)
			for path, value := range leaves(fields) {
				all[told+"."+path] = value
			}
		}
	}
	maps.DeleteFunc(all, func(path, value string) bool { return serverAssigned[path] == value || serverLeaf.MatchString(path) })
	return all
}

func compareRequest(t *testing.T, manifest, kind string, theirs, ours map[string]string, sum *count, found map[*requestReason]int) {
	t.Helper()
	sum.objects++
	for _, leaf := range slices.Sorted(maps.Keys(union(theirs, ours))) {
		if theirs[leaf] == ours[leaf] {
			sum.leaves++
			sum.equal++
			continue
		}
		at := slices.IndexFunc(requestReasons, func(r *requestReason) bool {
			return (r.manifest == "" || r.manifest == manifest) && r.leaf.MatchString(leaf)
		})
		if at < 0 {
			near, other := apart(theirs[leaf], ours[leaf])
			t.Errorf("%s %s %s\n    original: %s\n    ours:     %s", manifest, kind, leaf, near, other)
		} else {
			found[requestReasons[at]]++
		}
		if theirs[leaf] != "" && (at < 0 || !requestReasons[at].aside) {
			sum.leaves++
		}
	}
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
