package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestEveryLogLineIsJSON logs what JSON knows no form of, as controller-runtime
// does when a controller starts, and what a tenant may have written.
func TestEveryLogLineIsJSON(t *testing.T) {
	events := source.Kind[client.Object](nil, &corev1.Pod{}, &handler.EnqueueRequestForObject{}, predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return true }})
	for rule, c := range map[string]struct {
		value any
		want  any
	}{
		"a source of events says what it is":  {events, "kind source: *v1.Pod"},
		"a function is its type":              {struct{ F func() }{func() {}}, "struct { F func() }"},
		"a channel too":                       {make(chan int), "chan int"},
		"an error is its text":                {errors.New("boom"), "boom"},
		"an error that quotes a tenant":       {errors.New("pull \x1b]52;c;YQ==\x07x\u202e"), "pull x\ufffd"},
		"a text of a tenant":                  {"\u009b2Ax\x1b[31m", "x"},
		"an object is one":                    {types.NamespacedName{Namespace: "a", Name: "b"}, map[string]any{"Namespace": "a", "Name": "b"}},
		"an object that holds tenant's words": {map[string]string{"k": "\u202ex"}, map[string]any{"k": "\ufffdx"}},
		"nothing":                             {nil, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			var out bytes.Buffer
			logr.FromSlogHandler(Log{Level: "info", Format: "json"}.Handler(&out)).WithValues("with", c.value).Info("Starting \x1b[2J", "source", c.value)
			var line map[string]any
			if err := json.Unmarshal(out.Bytes(), &line); err != nil || strings.Contains(out.String(), "!ERROR") {
				t.Fatalf("%v: %s", err, out.String())
			}
			for _, key := range []string{"with", "source"} {
				if diff := cmp.Diff(c.want, line[key]); diff != "" {
					t.Errorf("%s: %s", key, diff)
				}
			}
			if line[slog.MessageKey] != "Starting " {
				t.Errorf("message %q", line[slog.MessageKey])
			}
		})
	}
}
