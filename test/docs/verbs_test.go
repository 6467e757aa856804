package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// said is how a message names a verb; "make the folder" is no such thing.
var said = regexp.MustCompile("(?:`|\\(|\\b[Rr]un |\\bsee )make ([a-z][a-z0-9-]+)|\\bmake ([a-z][a-z0-9-]+) (?:sets|runs|writes|builds|leaves|tests) (?:it|them)\\b")

// TestMessagesNameVerbsThatExist walks what programs, tests and scripts say: whoever
// is told to make something types just that.
func TestMessagesNameVerbsThatExist(t *testing.T) {
	t.Parallel()
	listed, err := exec.CommandContext(t.Context(), "make", "-C", root, "--no-print-directory", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == "bin" || name == "dist" || strings.HasPrefix(name, ".localcluster") {
				return filepath.SkipDir
			}
			return nil
		}
		var texts []string
		switch filepath.Ext(path) {
		case ".go":
			if texts, err = messages(path); err != nil {
				return err
			}
		case ".sh":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			texts = []string{string(text)}
		}
		for _, text := range texts {
			for _, match := range said.FindAllStringSubmatch(text, -1) {
				found++
				if verb := match[1] + match[2]; !strings.Contains(string(listed), "  make "+verb+" ") {
					t.Errorf("%s says make %s, which is no verb: %q", path, verb, text)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("%d messages name a verb: the pattern finds too few", found)
	}
}

// messages are the strings of a Go file.
func messages(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var texts []string
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts, nil
}

// TestAddOnsAreBuiltByTheVerbThatIsNamed because the message that an add-on is
// missing once named another.
func TestAddOnsAreBuiltByTheVerbThatIsNamed(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	message, err := os.ReadFile(filepath.Join(root, "localcluster", "internal", "addon", "addon.go"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("was not built \\(see `make ([a-z]+)`\\)").FindSubmatch(message)
	if named == nil {
		t.Fatal("the message is another")
	}
	rule := regexp.MustCompile(`(?m)^` + string(named[1]) + `:.*$`).FindString(string(rules))
	for _, file := range []string{"bin/lws-controller", "bin/addons/"} {
		if !strings.Contains(rule, file) {
			t.Errorf("make %s does not build %s: %s", named[1], file, rule)
		}
	}
}

// TestTheDemoKeepsToItself: what it leaves is not where the guides begin, is not
// committed, and is cleaned up.
func TestTheDemoKeepsToItself(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "internal", "cli", "demo", "demo.go"))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`const Dir = "([^"]+)"`).FindSubmatch(text)
	if match == nil {
		t.Fatal("the demo's folder is not found")
	}
	dir := string(match[1])
	up, err := os.ReadFile(filepath.Join(root, "localcluster", "internal", "clusterdir", "dir.go"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(up), strconv.Quote(dir)) {
		t.Errorf("the demo and localcluster both use %s", dir)
	}
	for file, want := range map[string]string{"Makefile": " " + dir + "\n", ".gitignore": dir + "/\n"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not know %s", file, dir)
		}
	}
}
