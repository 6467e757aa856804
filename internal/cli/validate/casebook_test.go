package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/validationcases"
)

// TestCasebook judges every case without a cluster: the schemas and the rules
// together say what a cluster with the operator would.
func TestCasebook(t *testing.T) {
	valid, err := validationcases.Valid()
	if err != nil {
		t.Fatal(err)
	}
	invalid, err := validationcases.Invalid()
	if err != nil {
		t.Fatal(err)
	}
	if len(valid) < 60 || len(invalid) < 80 {
		t.Errorf("%d valid and %d invalid cases", len(valid), len(invalid))
	}
	for i, c := range slices.Concat(valid, invalid) {
		t.Run(c.Rule, func(t *testing.T) {
			object, err := c.Object("lab", fmt.Sprintf("case-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			v, err := Judge(input.Document{Source: c.Rule, Unstructured: object}, config.Default().Rules())
			if err != nil {
				t.Fatal(err)
			}
			var fields []string
			for _, e := range v.Problems {
				fields = append(fields, e.Field)
			}
			if len(c.Refused) == 0 && len(fields) > 0 {
				t.Errorf("refused: %v", v.Problems)
			}
			for _, path := range c.Refused {
				if !slices.ContainsFunc(fields, func(f string) bool { return f == path || strings.HasPrefix(f, path+".") }) {
					t.Errorf("refused are %q, want %s", fields, path)
				}
			}
		})
	}
}
