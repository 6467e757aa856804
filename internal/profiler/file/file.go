// Package file is where the profiler meets a disk: tables that users add, and what it
// leaves. It reaches no cluster.
package file

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Catalog is what is known, with a user's file added to it, if there is one.
func Catalog(path string) (perfmodel.Catalog, error) {
	c := perfmodel.Default()
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read catalog: %w", err)
	}
	return c.With(text)
}

// Write writes files, by name, below a folder.
func Write(folder string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
