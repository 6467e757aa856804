// Command dashboards writes the Grafana dashboards of the chart. They are
// tables here, so that a reader sees the queries and not the frame around them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, board := range []dashboard{operator, inference, planner, logs} {
		text, err := json.MarshalIndent(board.grafana(), "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, board.file+".json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}
