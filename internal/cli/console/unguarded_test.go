//go:build unguarded

package console

import (
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/why"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestAttacksWorkWithoutTheirGuard: what TestAttacksAreRefused refuses is answered
// once its guard is left out.
func TestAttacksWorkWithoutTheirGuard(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.rule, func(t *testing.T) {
			t.Setenv(guard.Variable, string(a.without))
			c := a.open(t)
			status, _ := do(t, a.request(c, c.enter()))
			if status != a.works {
				t.Errorf("answered with %d, want %d", status, a.works)
			}
			if got := changed(t, c) != ""; got != a.changes {
				t.Errorf("changed a graph: %v", got)
			}
		})
	}
	// What html/template escapes is markup where the same templates are only text: the
	// test of hostile words would see it.
	for rule, data := range map[string]struct {
		template string
		data     any
	}{
		"a model's name":         {"ask", map[string]any{"Path": "/", "Models": []string{hostile}, "Problem": ""}},
		"a line of a log":        {"log-lines", []logLine{{Text: hostile}}},
		"a condition's message":  {"conditions", []view.Condition{{Type: "Ready", Message: hostile}}},
		"a rollout's message":    {"rollout-steps", view.Rollout{Facts: []view.Fact{{Name: "phase", Value: hostile}}}},
		"a planner's decision":   {"decisions", map[string]any{"All": []view.Decision{{Text: hostile}}, "Problem": "", "Teller": ""}},
		"what an order printed":  {"said", map[string]any{"Tone": "bad", "Text": "", "Printed": hostile}},
		"what limits a graph":    {"scaling-services", view.Scaling{Limited: []string{hostile}}},
		"why a graph sleeps":     {"graph-sleep", view.Graph{Sleep: &view.Sleep{Facts: []view.Fact{{Name: "Why", Value: hostile}}}}},
		"a piece of an answer":   {"piece", hostile},
		"an explanation's cause": {"graph-why", view.Graph{Why: why.Explanation{Cause: hostile}}},
	} {
		t.Run("script in "+rule, func(t *testing.T) {
			unescaped := texttemplate.Must(texttemplate.New("").Funcs(texttemplate.FuncMap{
				"json": func(any) string { return "" }, "clean": func(text string) string { return text }, "document": func(text string) string { return text },
				"body": func(string, any) string { return "" },
			}).ParseFS(templates, "template/*.html"))
			var b strings.Builder
			if err := unescaped.ExecuteTemplate(&b, data.template, data.data); err != nil {
				t.Fatal(err)
			}
			escaped, err := text(data.template, data.data)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), "<script>document") || strings.Contains(escaped, "<script>document") {
				t.Errorf("as text %s\nescaped %s", b.String(), escaped)
			}
		})
	}
	t.Run("a URL that was used before", func(t *testing.T) {
		t.Setenv(guard.Variable, string(GuardOnce))
		c := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
		c.enter()
		c.enter()
	})
	t.Run("another user with a stolen cookie", func(t *testing.T) {
		t.Setenv(guard.Variable, string(GuardUser))
		c := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
		if got := readAsOther(t, c); got != "200" {
			t.Errorf("another user's request: %s", got)
		}
	})
}
