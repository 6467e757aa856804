package config

import (
	"io"
	"log/slog"
)

// Handler writes log records the way the configuration asks for.
func (l Log) Handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if l.Verbose {
		options.Level = slog.LevelDebug
	}
	if l.Format == "text" {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}
