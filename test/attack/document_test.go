package attack

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityNamesWhatIsThere holds SECURITY.md against the attacks: those that
// it names are made, and what they are held by is told.
func TestSecurityNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 3 {
			continue
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			named++
			if !slices.ContainsFunc(attacks, func(a attack) bool { return a.name == quoted[1] }) {
				t.Errorf("there is no attack %q", quoted[1])
			}
		}
	}
	if named == 0 {
		t.Error("no attack is named")
	}
	for _, a := range attacks {
		for _, b := range a.heldBy {
			if (b.kind == inCode || b.kind == inPolicy) && !strings.Contains(string(text), "`"+b.name+"`") {
				t.Errorf("%s %s is not told, which holds %q", b.kind, b.name, a.name)
			}
		}
	}
}

// TestAttacksAreTold: a name says what happens if an attack works, once, and every
// attack says what it is held by.
func TestAttacksAreTold(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks {
		if seen[a.name] {
			t.Errorf("%q is there twice", a.name)
		}
		seen[a.name] = true
		if len(a.heldBy) == 0 {
			t.Errorf("nothing holds %q", a.name)
		}
	}
	if len(attacks) < 35 {
		t.Errorf("there are %d attacks", len(attacks))
	}
}
