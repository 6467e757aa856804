package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	root        = "../../"
	alertsFile  = root + "charts/platform/files/alerts.yaml"
	boardsGlob  = root + "charts/platform/files/dashboards/*.json"
	runbookFile = root + "docs/guide/runbook.md"
	metricsFile = root + "docs/spec/metrics.md"
)

// expression is a query of ours, where it stands, and the labels that are shown
// beside its values: a query by a label that nothing has finds something, too.
type expression struct {
	where, text string
	labels      []string
}

// dashboard is what we read of one of Grafana's.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Query      string `json:"query"`
			Datasource source `json:"datasource"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type source struct {
	Type string `json:"type"`
}

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		RefID      string `json:"refId"`
		Expr       string `json:"expr"`
		Legend     string `json:"legendFormat"`
		Datasource source `json:"datasource"`
	} `json:"targets"`
}

// readDashboards reads all of them by file name.
func readDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob(boardsGlob)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards at %s: %v", boardsGlob, err)
	}
	boards := map[string]dashboard{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var board dashboard
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		boards[filepath.Base(path)] = board
	}
	return boards
}

var (
	variable    = regexp.MustCompile(`\$[a-z_]+`)
	labelValues = regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)
	placeholder = regexp.MustCompile(`{{ ?(?:\$labels\.)?([A-Za-z_]+) ?}}`)
)

// named are the labels that a legend of Grafana or a text of an alert shows.
func named(text string) []string {
	var labels []string
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		labels = append(labels, match[1])
	}
	return labels
}

// dashboardExpressions are the queries that go to Prometheus, with every choice
// at "All": those of panels, and those that offer the choices.
func dashboardExpressions(t *testing.T) []expression {
	t.Helper()
	var all []expression
	for file, board := range readDashboards(t) {
		for _, v := range board.Templating.List {
			if v.Type != "query" || v.Datasource.Type != "prometheus" {
				continue
			}
			call := labelValues.FindStringSubmatch(v.Query)
			if call == nil {
				t.Fatalf("%s: $%s is no label_values(metric, label): %s", file, v.Name, v.Query)
			}
			all = append(all, expression{file + " $" + v.Name, "count by (" + call[2] + ") (" + call[1] + ")", call[2:]})
		}
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				if target.Datasource.Type == "prometheus" {
					all = append(all, expression{file + " " + p.Title + " " + target.RefID, variable.ReplaceAllString(target.Expr, ".*"), named(target.Legend)})
				}
			}
		}
	}
	return all
}

// alert is a rule as Prometheus reads it.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	Annotations map[string]string `json:"annotations"`
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatalf("%s: %v", alertsFile, err)
	}
	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no alerts", alertsFile)
	}
	return all
}

func alertExpressions(t *testing.T) []expression {
	t.Helper()
	var all []expression
	for _, a := range readAlerts(t) {
		all = append(all, expression{"alert " + a.Alert, a.Expr, named(a.Annotations["summary"])})
	}
	return all
}

var (
	threshold = regexp.MustCompile(`\s*[<>]=?\s*[0-9.]+$`)
	absence   = regexp.MustCompile(`^absent\((.*)\)$`)
)

// measured turns alerts into what they look at: an alert finds nothing as long
// as all is well, and that must not be because it looks at nothing.
func measured(alerts []expression) []expression {
	var all []expression
	for _, a := range alerts {
		text := threshold.ReplaceAllString(a.text, "")
		all = append(all, expression{a.where, absence.ReplaceAllString(text, "$1"), a.labels})
	}
	return all
}
