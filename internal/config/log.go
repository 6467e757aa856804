package config

import (
	"io"
	"log/slog"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Log is how the operator speaks.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `json:"level,omitempty"`
	// Format is text or json.
	Format string `json:"format,omitempty"`
}

func defaultLog() Log { return Log{Level: "info", Format: "json"} }

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
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "text" {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}
