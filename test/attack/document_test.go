package attack

import (
	"io/fs"
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

// TestSecurityNamesTestsThatExist holds for the rules that other suites show.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
			written[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) == 0 {
		t.Error("no test is named")
	}
	for _, quoted := range named {
		if !written[quoted[1]] {
			t.Errorf("there is no %s", quoted[1])
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
