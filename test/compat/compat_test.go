package compat

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

var write = flag.Bool("write", false, "write docs/compatibility.md instead of comparing with it")

const pageFile = "../../docs/compatibility.md"

func TestPublishedGraphsBecomeTheSameObjects(t *testing.T) {
	recordings := recordingsIn(t, "DYNAMO_REFERENCE_DIR", "reference")
	measure(t, edition{
		part: pageJanuary, target: 99, reasons: january,
		recordings: recordings, manifests: manifestsWithGraphs(corpus.All(t)),
		cluster: start(t, localenv.Options{Nodes: 1}), platform: platform, takenOver: true,
	})
}

// edition is one state of the original that ours is held against.
type edition struct {
	// part of the page tells the outcome.
	part part
	// target is the percentage of leaves that have to be equal on each path.
	target  float64
	reasons []*reason
	// recordings is the folder of what the original made of the manifests.
	recordings string
	manifests  map[string][]corpus.Document
	// offline compares what is sent. No server is asked, so what one fills in is left
	// out on both sides, and fields of a later Grove than that of cluster can be held
	// against recordings.
	offline  bool
	cluster  *localenv.Cluster
	platform func(workload.Provider) render.Platform
	// read brings the objects of a manifest that either side made into the form
	// in which they are compared; nil leaves them.
	read func(*testing.T, []*unstructured.Unstructured) []*unstructured.Unstructured
	// partly says that a manifest of which not everything can be made is no fault: what
	// is missing is among the differences.
	partly bool
	// takenOver tells how many graphs keep their pods when ours takes over.
	takenOver bool
}

// failed reports that not everything could be made of a document.
func (e edition) failed(t *testing.T, path workload.Provider, d corpus.Document, err error) {
	t.Helper()
	if !e.partly {
		t.Errorf("%s on path %s: %v", d.Name(), path, err)
		return
	}
	t.Logf("%s on path %s is made in part: %v", d.Name(), path, err)
}

func measure(t *testing.T, e edition) {
	t.Helper()
	o := outcome{reasons: e.reasons, tallies: map[workload.Provider]*tally{}}
	for _, path := range paths {
		o.tallies[path] = newTally(e.reasons)
		if e.offline {
			o.tallies[path].trim = sent
		}
	}
	for _, manifest := range slices.Sorted(maps.Keys(e.manifests)) {
		documents := e.manifests[manifest]
		o.manifests++
		for _, d := range documents {
			if d.Object.GetKind() == v1alpha1.KindDynamoGraphDeployment {
				o.graphs++
			}
		}
		for _, path := range paths {
			theirs, ours := made(reference(t, e.recordings, path, manifest), documents), ours(t, e, path, manifest, documents)
			if e.read != nil {
				theirs, ours = e.read(t, theirs), e.read(t, ours)
			}
			o.tallies[path].add(path, manifest, theirs, ours)
		}
	}
	for _, path := range paths {
		judge(t, path, o.tallies[path], e.target)
		if e.takenOver {
			takeover(t, path, o.tallies[path], o.manifests)
		}
	}
	everyReasonCounts(t, o)
	if !t.Failed() {
		publish(t, e.part, e.part.page(o))
	}
}

// manifestsWithGraphs are documents by file, where one of them is a graph or a component.
func manifestsWithGraphs(all []corpus.Document) map[string][]corpus.Document {
	files := map[string][]corpus.Document{}
	for _, d := range all {
		files[d.File] = append(files[d.File], d)
	}
	maps.DeleteFunc(files, func(_ string, documents []corpus.Document) bool {
		return !slices.ContainsFunc(documents, func(d corpus.Document) bool {
			return d.Object.GetKind() == v1alpha1.KindDynamoGraphDeployment || d.Object.GetKind() == v1alpha1.KindDynamoComponentDeployment
		})
	})
	return files
}

// made leaves out of a recording what was there before the operator: objects of
// the manifest, other than its graphs, and claims that it expects to find.
func made(recorded []*unstructured.Unstructured, documents []corpus.Document) []*unstructured.Unstructured {
	return slices.DeleteFunc(recorded, func(o *unstructured.Unstructured) bool {
		if _, before := o.GetLabels()["bench/preexisting"]; before {
			return true
		}
		return !conversion.Convertible(o.GetKind()) && slices.ContainsFunc(documents, func(d corpus.Document) bool {
			return d.Object.GetKind() == o.GetKind() && d.Object.GetName() == o.GetName()
		})
	})
}

// start runs a control plane that knows every optional API. Only dry runs are
// sent to it, so no pod ever starts.
func start(t *testing.T, o localenv.Options) *localenv.Cluster {
	t.Helper()
	bin := os.Getenv("PLAYGROUND_BIN")
	if bin == "" {
		t.Skip("PLAYGROUND_BIN is not set: no programs to run a cluster from (make compat sets it)")
	}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "localcluster.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	o.BinDir, o.Dir, o.Log = bin, filepath.Join(dir, "cluster"), log
	o.Args = []string{"--with", "lws,volcano,istio,inference,grove"}
	cluster, err := localenv.Up(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	cluster.Client = retryclient.Client(cluster.Client)
	if err := cluster.InstallAPI(ctx); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func judge(t *testing.T, path workload.Provider, got *tally, target float64) {
	t.Helper()
	sum := got.total()
	summary.Line(t, "%s path: %d of %d leaves equal to the original's (%s) in %d objects", path, sum.equal, sum.leaves, share(sum), sum.objects)
	if sum.percent() < target {
		t.Errorf("%s: fewer than %g %% of the leaves are equal", path, target)
	}
	var list strings.Builder
	for _, d := range got.unexplained {
		theirs, ours := apart(d.theirs, d.ours)
		fmt.Fprintf(&list, "  %s %s %s\n    original: %s\n    ours:     %s\n", d.manifest, d.identity, d.leaf, theirs, ours)
	}
	if len(got.unexplained) > 0 {
		t.Errorf("%s: %d differences that nobody intended:\n%s", path, len(got.unexplained), list.String())
	}
}

// takeover tells how many graphs keep their pods when this operator takes a
// cluster over as the original left it. Any other needs a reason.
func takeover(t *testing.T, path workload.Provider, got *tally, manifests int) {
	t.Helper()
	rolled := got.rolled()
	summary.Line(t, "%s path: taken over from the original, the graphs of %d of %d manifests keep their pods", path, manifests-len(rolled), manifests)
	for _, manifest := range slices.Sorted(maps.Keys(rolled)) {
		summary.Line(t, "  %s: pods are replaced: %s", manifest, strings.Join(rolled[manifest], "; "))
	}
}

// apart shows two values near the place where they part; scripts are long.
func apart(theirs, ours string) (near, other string) {
	const before, after = 40, 120
	same := 0
	for same < min(len(theirs), len(ours)) && theirs[same] == ours[same] {
		same++
	}
	cut := func(value string) string {
		switch {
		case value == "":
			return "(none)"
		case len(value) <= before+after:
			return value
		}
		from := max(0, min(same, len(value))-before)
		return "..." + value[from:min(len(value), from+before+after)] + "..."
	}
	return cut(theirs), cut(ours)
}

// everyReasonCounts keeps the table of reasons honest: one that explains
// nothing any more has to go.
func everyReasonCounts(t *testing.T, o outcome) {
	t.Helper()
	for _, r := range o.reasons {
		found := 0
		for _, tally := range o.tallies {
			found += len(tally.intended[r])
		}
		if found == 0 {
			t.Errorf("reason %q explains no difference: remove it", r.title)
		}
	}
}

// publish writes one part of the page, or holds it against what is written.
func publish(t *testing.T, p part, text string) {
	t.Helper()
	written, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	before, old, after, err := p.cut(string(written))
	if err != nil {
		t.Fatalf("docs/compatibility.md: %v", err)
	}
	if *write {
		if err := os.WriteFile(pageFile, []byte(before+text+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(old, text); diff != "" {
		t.Errorf("docs/compatibility.md is out of date; make compat writes it (-written +measured):\n%s", diff)
	}
}
