// Package output prints objects the way kubectl does.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Format is how objects are printed.
type Format string

// The formats, as -o takes them.
const (
	YAML Format = "yaml"
	JSON Format = "json"
)

// Validate refuses formats that do not exist.
func (f Format) Validate() error {
	if f != YAML && f != JSON {
		return fmt.Errorf("output %q: yaml or json", f)
	}
	return nil
}

// Write prints a document for each object, or, as JSON, one list; alone, an object is
// printed as it is where bare asks for that.
func (f Format) Write(out io.Writer, objects []map[string]any, bare bool) error {
	if f == JSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if bare && len(objects) == 1 {
			return encoder.Encode(objects[0])
		}
		return encoder.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
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
