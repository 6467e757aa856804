package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
)

// quotedKey is a label or an annotation of ours in a text.
var quotedKey = regexp.MustCompile(`\b(dgdr\.)?nvidia\.com/[A-Za-z][A-Za-z0-9-]*(\.[a-z]+)?`)

// others are keys of the group that are not ours: the API versions, the device
// plugin's resource, the labels of GPU feature discovery, an image in a registry.
var others = []string{"nvidia.com/v1alpha1", "nvidia.com/v1beta1", "nvidia.com/gpu", "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/nvidia"}

// TestKeysThatPagesQuoteExist: a label or an annotation that nobody reads looks just
// like one that works.
func TestKeysThatPagesQuoteExist(t *testing.T) {
	t.Parallel()
	known := slices.Concat(others, constants(t))
	for name, page := range pages(t) {
		for _, key := range quotedKey.FindAllString(page, -1) {
			if !slices.Contains(known, key) && !slices.Contains(known, strings.TrimSuffix(key, "-")) { // kubectl takes an annotation off by a hyphen
				t.Errorf("%s: %s is neither a label nor an annotation of the API", name, key)
			}
		}
	}
}

// constants are the texts of the API's Go constants.
func constants(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "api", "v1alpha1", "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sources of the API: %v", err)
	}
	var all []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					all = append(all, text)
				}
			}
			return true
		})
	}
	return all
}

// conditionName is a condition or a reason in a table.
var conditionName = regexp.MustCompile("`([A-Z][A-Za-z]+)`")

// TestConditionsThatPagesQuoteExist: what a page says that a condition says is what
// the code can say.
func TestConditionsThatPagesQuoteExist(t *testing.T) {
	t.Parallel()
	known := append(constants(t), "True", "False")
	for _, reason := range diagnosis.Reasons() {
		known = append(known, string(reason))
	}
	for name, page := range pages(t) {
		if !strings.HasPrefix(name, "docs/spec/dynamo") {
			continue
		}
		for line := range strings.Lines(page) {
			if !strings.HasPrefix(line, "| `") || !strings.Contains(line, "`False`") && !strings.Contains(line, "`True`") {
				continue
			}
			for _, found := range conditionName.FindAllStringSubmatch(line, -1) {
				if !slices.Contains(known, found[1]) {
					t.Errorf("%s: no condition of the API says %s", name, found[1])
				}
			}
		}
	}
}

var (
	quotedTest   = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	declaredTest = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// TestTestsThatPagesNameExist: a test that was renamed goes on being what a page relies on.
func TestTestsThatPagesNameExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, folder := range []string{"api", "cmd", "hack", "internal", "localcluster", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range declaredTest.FindAllSubmatch(text, -1) {
				known[string(found[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, page := range pages(t) {
		for _, quoted := range quotedTest.FindAllStringSubmatch(page, -1) {
			if !known[quoted[1]] {
				t.Errorf("%s: there is no %s", name, quoted[1])
			}
		}
	}
}
