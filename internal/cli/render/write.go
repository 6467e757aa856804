package render

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

var writers = map[string]func(io.Writer, []map[string]any) error{"yaml": writeYAML, "json": writeJSON}

// writeYAML writes one document for each object.
func writeYAML(out io.Writer, objects []map[string]any) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes one list, as kubectl does.
func writeJSON(out io.Writer, objects []map[string]any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}
