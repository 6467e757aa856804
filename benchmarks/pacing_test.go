package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// entry is a request that was answered some seconds after the beginning.
func entry(begin time.Time, seconds float64, agent, verb, resource, name string, code int) auditlog.Entry {
	e := auditlog.Entry{UserAgent: agent, Verb: verb, Answered: begin.Add(time.Duration(seconds * float64(time.Second)))}
	e.Ref.Resource, e.Ref.Subresource, _ = strings.Cut(resource, "/")
	e.Ref.Name, e.Status.Code = name, code
	return e
}

func TestATimelineTellsWhenStatusesWereTrue(t *testing.T) {
	begin := time.Now()
	line := timeline{begin: begin}
	for _, e := range []auditlog.Entry{
		entry(begin, 0, "bare-client", "create", "dynamographdeployments", "graph-00000", 201),
		entry(begin, 1, "dynamo-operator/v1", "patch", "deployments", "graph-00000-decode", 201),
		entry(begin, 1, "dynamo-operator/v1", "patch", "deployments", "graph-00001-decode", 201),
		entry(begin, 1.5, "dynamo-operator/v1", "patch", "dynamographdeployments/status", "graph-00000", 200),
		entry(begin, 2, "dynamo-operator/v1", "patch", "dynamographdeployments/status", "graph-00001", 200),
		entry(begin, 3, "dynamo-operator/v1", "patch", "services", "graph-00001-decode", 201),
		entry(begin, 3.5, "dynamo-operator/v1", "patch", "services", "graph-00001-decode", 200), // changes nothing
		entry(begin, 4, "dynamo-operator/v1", "create", "events", "graph-00001.1", 201),
		entry(begin, 5, "dynamo-operator/v1", "patch", "dynamocomponentdeployments/status", "graph-00001-decode", 200),
		entry(begin, 6, "dynamo-operator/v1", "patch", "dynamographdeployments/status", "graph-00001", 200),
		entry(begin, 9, "dynamo-operator/v1", "update", "leases", "dynamo-operator", 200),
	} {
		line.add(e)
	}
	want := paced{child: 3 * time.Second, status: 6 * time.Second, lag: 3 * time.Second, usual: 3 * time.Second, writes: 4.5, statuses: 2}
	if diff := cmp.Diff(want, line.row(2), cmp.AllowUnexported(paced{})); diff != "" {
		t.Error("-want +got", diff)
	}
}

func TestEachMeasurementLeavesTheOthersPartOfThePage(t *testing.T) {
	folder := t.TempDir()
	read := func() string {
		text, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tables := []pacing{{graphs: 7, rows: []paced{{variant: "as shipped", status: 15 * time.Second}, {variant: "without any", status: 18 * time.Second}}, bare: []bareResult{{Objects: 70, Wall: 9 * time.Second}, {Objects: 70, Wall: 11 * time.Second}}}}
	for _, write := range []func() error{
		func() error { return writePacing(folder, tables) },
		func() error { return writePage(folder, []result{sample(100, time.Minute, time.Minute, 1900, 0)}) },
		func() error { return writePacing(folder, tables) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	page := read()
	for _, part := range []string{"# Benchmarks", "## 100 graphs", pacingTitle, "| as shipped | 0.0 s | 15.0 s | 1.50 |", "18.0 s (+20 %) | 1.80", "9.0 s and 11.0 s"} {
		if strings.Count(page, part) != 1 {
			t.Errorf("%q stands %d times in\n%s", part, strings.Count(page, part), page)
		}
	}
}
