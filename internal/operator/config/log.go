package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// Log is how the operator speaks.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `json:"level,omitempty"`
	// Format is text or json.
	Format string `json:"format,omitempty"`
}

func (l Log) validate(at *field.Path) field.ErrorList {
	return append(oneOf(at.Child("level"), l.Level, "debug", "info", "warn", "error"),
		oneOf(at.Child("format"), l.Format, "text", "json")...)
}

// Handler writes log records the way the configuration asks for.
func (l Log) Handler(w io.Writer) slog.Handler {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		level = slog.LevelInfo // Validate has said so
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: printable}
	if l.Format == "text" {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}

// printable is a value as it can be written in every format: libraries log what
// JSON knows no form of, such as a source of events that holds functions, and
// messages quote what tenants wrote.
func printable(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(sanitise.Text(a.Value.String()))
	case slog.KindAny:
		a.Value = encodable(a.Value.Any())
	}
	return a
}

func encodable(value any) slog.Value {
	switch v := value.(type) {
	case json.Marshaler: // has a form of its own
	case error:
		return slog.StringValue(sanitise.Text(v.Error()))
	case *slog.Source:
		return slog.AnyValue(v)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return slog.StringValue(sanitise.Text(described(value)))
	}
	if safe := sanitise.Text(string(text)); safe != string(text) {
		return slog.AnyValue(json.RawMessage(safe))
	}
	return slog.AnyValue(value)
}

// described is what a value says of itself, or its type. Its fields are left out:
// those of a type that was not made to be shown can be without end.
func described(value any) string {
	if s, ok := value.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", value)
}
