package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// writePage writes benchmarks.md and its plot into a folder.
func writePage(folder string, results []result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\nWritten by `make bench` on %d cores, %s, Go %s. Do not edit.\n\n",
		runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), strings.TrimPrefix(runtime.Version(), "go"))
	fmt.Fprint(&b, `Graphs of three services (a frontend, a prefill and a decode worker) on a fresh local control
plane. The limit is a bare client that makes the same objects in the same run on another fresh
control plane, with as many requests under way as the operator may have. Requests are counted by
the API server's audit log; renewing a lease is left out. A graph is created when all its children
exist; one graph is made before, so that a cold API server is not what is measured. Where there is
no controller manager, the benchmark deletes what deleted graphs own, as a garbage collector does.
Of runs of up to 100 graphs, which take seconds, the middle one of three is shown.

No client's time is in proportion to the number of graphs: whenever the API server of Kubernetes
1.37 gives a Service an address, it goes through all addresses in use, twice, to count them. With
three Services a graph that is a fifth of its work at 1,000 graphs, and the larger part of it at
5,000.

![time by number of graphs](benchmarks.svg)

`)
	for _, r := range results {
		fmt.Fprintf(&b, "## %d graphs, %s\n\n%s\n%s\n\n", r.graphs, r.where(), r.table(), r.comparison())
	}
	if g, ok := growthOf(results); ok {
		fmt.Fprintln(&b, g)
	}
	page := filepath.Join(folder, "benchmarks.md")
	_, kept, err := split(page)
	if err != nil {
		return err
	}
	if kept != "" {
		b.WriteString("\n" + kept)
	}
	if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "benchmarks.svg"), []byte(plot(results)), 0o644)
}

// replacePart writes the part of benchmarks.md that is about pacing, and leaves the
// rest, which another measurement writes.
func replacePart(folder, part string) error {
	page := filepath.Join(folder, "benchmarks.md")
	rest, _, err := split(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(strings.TrimRight(rest, "\n")+"\n\n"+part), 0o644)
}

// split is a page before the part about pacing, and that part. A page that is not
// there is empty.
func split(page string) (rest, part string, err error) {
	text, err := os.ReadFile(page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	rest, part, found := strings.Cut(string(text), pacingTitle)
	if found {
		part = pacingTitle + part
	}
	return rest, part, nil
}

// plot draws, for each run, the bare client's time beside the operator's.
func plot(results []result) string {
	const width, height, left, bottom = 640, 300, 60, 40
	longest := 0.0
	for _, r := range results {
		longest = max(longest, r.find("create").Wall.Seconds(), r.Posted.Wall.Seconds())
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	step := float64(width-left-20) / float64(len(results))
	bar := func(x float64, seconds float64, colour, label string) {
		tall := seconds / longest * (height - bottom - 40)
		y := float64(height-bottom) - tall
		fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" fill="%s"/>`+"\n", x, y, step/3, tall, colour)
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="middle">%s</text>`+"\n", x+step/6, y-4, label)
	}
	for i, r := range results {
		x := left + float64(i)*step
		bar(x+step/6, r.Posted.Wall.Seconds(), "#9aa5b1", fmt.Sprintf("%.1f s", r.Posted.Wall.Seconds()))
		bar(x+step/2, r.find("create").Wall.Seconds(), "#4c9a2a", fmt.Sprintf("%.1f s", r.find("create").Wall.Seconds()))
		fmt.Fprintf(&b, `<text x="%.0f" y="%d" text-anchor="middle">%s</text>`+"\n", x+step/2, height-bottom+18, r.label())
	}
	fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="black"/>`+"\n", left, height-bottom, width-20, height-bottom)
	fmt.Fprintf(&b, `<text x="%d" y="16"><tspan fill="#9aa5b1">■</tspan> bare client <tspan fill="#4c9a2a">■</tspan> operator: time to create all children</text>`+"\n</svg>\n", left)
	return b.String()
}
