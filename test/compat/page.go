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
	reasons           []*reason
	manifests, graphs int
	tallies           map[workload.Provider]*tally
}

// part is one of the parts of the page. Each is written by a test of its own and
// stands between two marks.
type part struct {
	mark string
	// head takes the numbers of manifests and graphs.
	head, tail string
}

// cut takes the page apart around a part.
func (p part) cut(page string) (before, text, after string, err error) {
	begin, end := "<!-- begin "+p.mark+" -->\n", "<!-- end "+p.mark+" -->\n"
	before, rest, found := strings.Cut(page, begin)
	text, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", "", "", fmt.Errorf("no part between %q and %q", begin, end)
	}
	return before + begin, text, end + after, nil
}

var pageJanuary = part{
	mark: "january",
	head: `
## January 2026

The measure is %d published manifests with %d graphs, and recordings of the objects that
the original operator (its repository at the end of January 2026) made of each on an API
server. Ours are rendered from the same manifests under the default settings.

### How much is equal

Every object that the original makes is there under the same name, apart from those
listed below.

`,
	tail: `### Beyond single objects

- A graph carries two annotations of ours, ` + "`nvidia.com/workload-provider` and `nvidia.com/workload-provider-choice`" + `,
  which keep it on the path that it was started on. The original's finalizer is not needed.
- Children are written by server-side apply: fields that others manage stay theirs.
- Claims that a graph creates carry two labels in place of the original's owner reference, so that
  ` + "`nvidia.com/retain-pvcs`" + ` holds however the graph is deleted. No published manifest creates one.

`,
}

var pageRelease = part{
	mark: "release 1.4.1",
	head: `
## Release 1.4.1

The measure is %d manifests with %d graphs, in either version of the API, and recordings
of what a running 1.4.1 made of each. Ours are rendered under ` + "`runtime.contract: 1.x`" + `. Our
kinds are read as v1beta1 on both sides. Workers are named there by a hash of their
generation; it is taken out of names, and stands for our id of a generation in labels and
variables. Annotations in which either operator keeps something for itself (payloads of
conversion, origin version, worker hash) and the API version of owners are not compared.
Ours are compared as they are sent, and what an API server fills in is left out on both
sides: no Grove is at hand that knows all that is sent.

### How much is equal to 1.4.1

`,
}

const (
	pageIntended = `
### Where we differ on purpose

Numbers count leaves, or whole objects. Anything else that differs is a fault and fails
the test.

`
	pageAside = `### What is not counted

No operator decided on these. Status, UIDs, addresses, finalizers and the bookkeeping
annotations of either operator are left out altogether.

`
)

// page is the text of a part. It holds numbers and the paths of fields, no value
// of a manifest or a recording.
func (p part) page(o outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, p.head, o.manifests, o.graphs)
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
	o.writeReasons(&b, false)
	b.WriteString(pageAside)
	o.writeReasons(&b, true)
	b.WriteString(p.tail)
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

// writeReasons writes a paragraph for each reason, with numbers and an example.
func (o outcome) writeReasons(b *strings.Builder, aside bool) {
	for _, r := range o.reasons {
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
