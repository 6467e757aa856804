package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		text    string
		want    []string
		problem string
	}{
		"one document needs no number":   {text: "kind: A\nmetadata: {name: x}", want: []string{"f: A x"}},
		"several are counted":            {text: "kind: A\nmetadata: {name: x}\n---\nkind: B\nmetadata: {name: z}", want: []string{"f: document 1: A x", "f: document 2: B z"}},
		"empty documents do not count":   {text: "---\n# nothing\n---\nkind: A\n---\n", want: []string{"f: A "}},
		"JSON is YAML":                   {text: `{"kind": "A"}`, want: []string{"f: A "}},
		"a list is its items":            {text: "kind: List\napiVersion: v1\nitems: [{kind: A}, {kind: B}]", want: []string{"f: document 1: A ", "f: document 2: B "}},
		"a key that stands twice is bad": {text: "kind: A\nkind: B", problem: "kind"},
		"a text is no object":            {text: "hello", problem: "no object"},
		"a list of texts holds nothing":  {text: "kind: List\nitems: [a]", problem: "item"},
		"what is no YAML is said":        {text: "kind: A\n---\na: b: c", problem: "document 2"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			documents, err := Parse("f", []byte(c.text))
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("error %v does not name %s", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range documents {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFolderIsTheManifestsInIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": "kind: B", "a.json": `{"kind": "A"}`, "notes.md": "no: manifest", "below/c.yaml": "kind: C"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	documents, err := Read([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, d := range documents {
		kinds = append(kinds, d.GetKind())
	}
	if diff := cmp.Diff([]string{"A", "B"}, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
