package compat

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// paths are the two ways in which a graph is run.
var paths = []workload.Provider{workload.ProviderComponent, workload.ProviderGrove}

// outcome is what was measured.
type outcome struct {
	manifests, graphs int
	tallies           map[workload.Provider]*tally
}

const (
	pageHead = `# Compatibility

<!-- Written by make compat. Do not edit. -->

What does this operator make of graphs that were written for NVIDIA's? The measure is %d
published manifests with %d graphs, and recordings of the objects that the original
operator (its repository at the end of January 2026) made of each on an API server. Ours
are rendered from the same manifests under the same settings, sent by the operator's own
writer, and compared as an API server stores them. A leaf is a scalar anywhere in an
object: labels, annotations, owners, spec, data, rules. Items of lists are found by their
key, and the order of such a list is a leaf of its own. Leaves of the original
count; what only ours has is listed below as well.

There are two paths: *component* runs each service as a Deployment or LeaderWorkerSets,
*grove* runs the graph as one PodCliqueSet.

## How much is equal

Every object that the original makes is there under the same name, apart from those
listed below.

`
	pageIntended = `
## Where we differ on purpose

Numbers count leaves, or whole objects. Anything else that differs is a fault and fails
the test.

`
	pageAside = `## What is not counted

No operator decided on these. Status, UIDs, addresses, finalizers and the bookkeeping
annotations of either operator are left out altogether.

`
	pageTail = `## Profiling Jobs of requests

Requests of v1beta1 are held against recordings of 1.4.1, what the profiler is told value by
value (` + "`" + `TestProfilingJobsOfRequests` + "`" + ` prints how much is equal). We differ in this:

- **The contract of a profiler follows its image.** 1.4.1 runs ` + "`" + `dynamo.profiler` + "`" + ` in every image,
  also in those before 1.0, which do not have it. We run what an image of that tag has.
- **Overrides of the graph are merged by the operator** when the profiler is done, as they were
  accepted; no tool is brought into the profiler's pod, and the profiler is not told of them.
- **The collector is ours.** It ends with the profiler, and proves what it copied.
- **The Hugging Face token is optional.** Without the Secret the pod would never start.
- **A profiler's last lines of log are kept** as its termination message, for the condition.
- **Profiling has a deadline**, ` + "`" + `profiler.deadline` + "`" + ` or the request's annotation.
- **Objects lead back to their request** by labels and an annotation of ours.
- Hardware that was found on nodes is told to the profiler and not written into the user's spec.
- An init container of ` + "`" + `overrides.profilingJob` + "`" + ` without an image means the container of its name,
  as it is documented; 1.4.1 makes no Job of it.

## Beyond single objects

- A graph carries two annotations of ours, ` + "`nvidia.com/workload-provider` and `nvidia.com/workload-provider-choice`" + `,
  which keep it on the path that it was started on. The original's finalizer is not needed.
- Children are written by server-side apply: fields that others manage stay theirs.
- Claims that a graph creates carry two labels in place of the original's owner reference, so that
  ` + "`nvidia.com/retain-pvcs`" + ` holds however the graph is deleted. No published manifest creates one.
- ` + "`make compat`" + ` measures again and writes this page. It needs the manifests and the
  recordings, which are not part of this repository; without them it is skipped.
`
)

// page is docs/compatibility.md. It holds numbers and the paths of fields, no
// value of a manifest or a recording.
func page(o outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, o.manifests, o.graphs)
	b.WriteString("| kind | component: objects | leaves | equal | grove: objects | leaves | equal |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, kind := range o.kinds() {
		b.WriteString("| " + kind)
		for _, path := range paths {
			b.WriteString(cells(o.tallies[path].kinds[kind]))
		}
		b.WriteString(" |\n")
	}
	b.WriteString("| **all**")
	for _, path := range paths {
		b.WriteString(cells(new(o.tallies[path].total())))
	}
	b.WriteString(" |\n")
	b.WriteString(pageIntended)
	o.reasons(&b, false)
	b.WriteString(pageAside)
	o.reasons(&b, true)
	b.WriteString(pageTail)
	return b.String()
}

func (o outcome) kinds() []string {
	all := map[string]bool{}
	for _, t := range o.tallies {
		for kind := range t.kinds {
			all[kind] = true
		}
	}
	return sortedKeys(all)
}

func cells(c *count) string {
	if c == nil {
		return " | | |"
	}
	return fmt.Sprintf(" | %d | %d | %s", c.objects, c.leaves, share(*c))
}

// share never rounds up to all.
func share(c count) string {
	if c.equal == c.leaves {
		return "100 %"
	}
	return fmt.Sprintf("%.2f %%", min(c.percent(), 99.99))
}

// reasons writes a paragraph for each reason, with numbers and an example.
func (o outcome) reasons(b *strings.Builder, aside bool) {
	for _, r := range intended {
		if r.aside != aside {
			continue
		}
		var numbers []string
		var all []difference
		for _, path := range paths {
			here := o.tallies[path].intended[r]
			numbers = append(numbers, fmt.Sprintf("%s %d", path, len(here)))
			all = append(all, here...)
		}
		fmt.Fprintf(b, "**%s.** %s\n*%s; for example* %s\n\n", r.title, r.why, strings.Join(numbers, ", "), example(all))
	}
}

// example is the difference that is said shortest, so that it stays the same.
func example(all []difference) string {
	if len(all) == 0 {
		return ""
	}
	d := slices.MinFunc(all, func(a, b difference) int {
		return cmp.Or(
			cmp.Compare(len(a.leaf), len(b.leaf)), cmp.Compare(a.leaf, b.leaf),
			cmp.Compare(a.manifest, b.manifest), cmp.Compare(a.String(), b.String()),
		)
	})
	what := d.String()
	if d.leaf != "" {
		what += ": " + d.leaf
	}
	return fmt.Sprintf("`%s` in %s", what, d.manifest)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
