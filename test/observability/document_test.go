package observability

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	ours   = regexp.MustCompile(`dynamo_operator_[a-z_]+`)
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

func TestEveryMetricOfTheOperatorThatIsAskedForIsDocumented(t *testing.T) {
	t.Parallel()
	document := read(t, metricsFile)
	names := 0
	for _, e := range slices.Concat(dashboardExpressions(t), alertExpressions(t)) {
		for _, name := range ours.FindAllString(e.text, -1) {
			names++
			if !strings.Contains(document, "`"+suffix.ReplaceAllString(name, "")+"`") {
				t.Errorf("%s asks for %s, which %s does not know", e.where, name, metricsFile)
			}
		}
	}
	if names == 0 {
		t.Error("no query asks for a metric of the operator")
	}
}

func TestEveryAlertHasASectionInTheRunbook(t *testing.T) {
	t.Parallel()
	runbook := "\n" + strings.ToLower(read(t, runbookFile))
	var sections []string
	for _, a := range readAlerts(t) {
		page, anchor, _ := strings.Cut(a.Annotations["runbook_url"], "#")
		if !strings.HasSuffix(page, "/docs/guide/runbook.md") || !strings.EqualFold(anchor, a.Alert) {
			t.Errorf("%s links to %s#%s", a.Alert, page, anchor)
		}
		sections = append(sections, "## "+strings.ToLower(a.Alert))
		if !strings.Contains(runbook, "\n## "+anchor+"\n") {
			t.Errorf("%s: the runbook has no section %s", a.Alert, anchor)
		}
	}
	for line := range strings.Lines(runbook) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "## ") && !slices.Contains(sections, line) {
			t.Errorf("no alert leads to the section %q of the runbook", line)
		}
	}
}

var metric = regexp.MustCompile("`([a-z]+(?:_[a-z]+)*_(?:total|seconds|ready|bytes))`")

// TestTheRunbookNamesWhatDashboardsShow, so that nobody looks for a metric that
// is not served: every query of a dashboard is known to find data.
func TestTheRunbookNamesWhatDashboardsShow(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	for _, e := range dashboardExpressions(t) {
		shown.WriteString(e.text + "\n")
	}
	names := metric.FindAllStringSubmatch(read(t, runbookFile), -1)
	if len(names) == 0 {
		t.Error("the runbook names no metric")
	}
	for _, name := range names {
		if !strings.Contains(shown.String(), name[1]) {
			t.Errorf("the runbook sends people to %s, which no dashboard shows", name[1])
		}
	}
}

func TestEveryDashboardIsWhole(t *testing.T) {
	t.Parallel()
	uids := map[string]string{}
	for file, board := range readDashboards(t) {
		if other := uids[board.UID]; board.UID == "" || other != "" {
			t.Errorf("%s: uid %q is empty or that of %s", file, board.UID, other)
		}
		uids[board.UID] = file
		if board.Title == "" {
			t.Errorf("%s has no title", file)
		}
		chosen := map[string]bool{"$datasource": true}
		for _, v := range board.Templating.List {
			chosen["$"+v.Name] = true
		}
		ids := map[int]bool{}
		for _, p := range board.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have the id %d", file, p.ID)
			}
			ids[p.ID] = true
			if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %q does not fit on the grid: %+v", file, p.Title, p.GridPos)
			}
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: %q asks nothing", file, p.Title)
			}
			for _, target := range p.Targets {
				for _, name := range variable.FindAllString(target.Expr, -1) {
					if !chosen[name] {
						t.Errorf("%s: %q uses %s, which nobody can choose", file, p.Title, name)
					}
				}
			}
		}
	}
}
