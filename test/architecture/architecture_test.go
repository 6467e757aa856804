// Package architecture tests what the layout promises and no compiler checks.
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dynamo-operator/dynamo-operator"

// dependencies lists every package behind a pattern of this module.
func dependencies(t *testing.T, pattern string) []string {
	t.Helper()
	command := exec.Command("go", "list", "-deps", pattern)
	command.Dir = "../.."
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pattern, err)
	}
	return strings.Fields(string(output))
}

func TestProgramsDoNotContainKubernetes(t *testing.T) {
	deps := dependencies(t, "./cmd/...")
	if len(deps) < 100 {
		t.Fatalf("only %d packages listed", len(deps))
	}
	for _, dep := range deps {
		if dep == "k8s.io/kubernetes" || strings.HasPrefix(dep, "k8s.io/kubernetes/") {
			t.Errorf("a program of the root module contains %s", dep)
		}
	}
}

// The linter sees to clocks, loggers and direct imports; what a package reaches
// through others is seen only here.
func TestCoreReachesNoClient(t *testing.T) {
	forbidden := []string{"k8s.io/client-go/", "sigs.k8s.io/controller-runtime"}
	for _, dep := range dependencies(t, "./internal/core/...") {
		for _, f := range forbidden {
			if strings.HasPrefix(dep, f) {
				t.Errorf("internal/core reaches %s", dep)
			}
		}
	}
}

func TestCoreImportsNoOtherPackageOfOurs(t *testing.T) {
	deps := dependencies(t, "./internal/core/...")
	for _, dep := range deps {
		path, ours := strings.CutPrefix(dep, module+"/")
		if ours && path != "config/crd" && !strings.HasPrefix(path, "api/") && !strings.HasPrefix(path, "internal/core/") {
			t.Errorf("internal/core reaches %s", path)
		}
	}
	if !slices.Contains(deps, module+"/internal/core/graph") {
		t.Fatalf("internal/core/graph is not listed among %d packages", len(deps))
	}
}

func TestProgramsDoNotContainEachOther(t *testing.T) {
	rooms := []string{"mocker", "profiler", "planner", "activator", "operator/controller", "cli"}
	for program, own := range map[string]string{"dynamo-mocker": "mocker", "dynamo-profiler": "profiler", "dynamo-planner": "planner", "dynamo-activator": "activator"} {
		for _, dep := range dependencies(t, "./cmd/"+program) {
			for _, room := range rooms {
				if room != own && strings.HasPrefix(dep, module+"/internal/"+room) {
					t.Errorf("%s contains %s", program, dep)
				}
			}
		}
	}
}

func TestWhatWorksWithoutAClusterHasNoClient(t *testing.T) {
	for _, verb := range []string{"profile", "render", "validate"} {
		for _, dep := range dependencies(t, "./internal/cli/"+verb) {
			// Of client-go the types' scheme alone, which reaches nobody. The rules of
			// schemas are evaluated by packages of the API server.
			if dep != "k8s.io/client-go/kubernetes/scheme" && (strings.HasPrefix(dep, "k8s.io/client-go/") || strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime")) {
				t.Errorf("kubectl-dynamo %s reaches %s", verb, dep)
			}
		}
	}
}

func TestTheAPIStaysLight(t *testing.T) {
	for _, dep := range dependencies(t, "./api/...") {
		if strings.HasPrefix(dep, "k8s.io/client-go") || strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime") || strings.HasPrefix(dep, module+"/internal") {
			t.Errorf("api depends on %s", dep)
		}
	}
}

// sources parses the files of the programs that match no exception.
func sources(t *testing.T, except ...string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir("../../internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		path = filepath.ToSlash(path)
		if slices.ContainsFunc(except, func(folder string) bool { return strings.HasPrefix(path, "../../"+folder+"/") }) {
			return nil
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 200 {
		t.Fatalf("only %d files found", len(files))
	}
	return files
}

// A question of the tour has its answer in the file that is named, and its word in so
// few others that who looks for it finds it.
func TestQuestionsOfTheTourAreAnsweredByGrep(t *testing.T) {
	const few = 5
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| ([^|`]+) \\| `([^`]+)` \\| `([^`]+\\.go)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Fatalf("%d questions found", len(rows))
	}
	texts := map[string]string{}
	for path := range sources(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimPrefix(path, "../../")] = string(text)
	}
	for _, row := range rows {
		var found []string
		for path, text := range texts {
			if strings.Contains(text, row[2]) {
				found = append(found, path)
			}
		}
		slices.Sort(found)
		if !slices.Contains(found, row[3]) || len(found) > few {
			t.Errorf("where is %s: %q is not in %s, or in too many files: %q", row[1], row[2], row[3], found)
		}
	}
}

// Statuses, and conditions in them, are written in one place.
func TestStatusesAreWrittenInOnePlace(t *testing.T) {
	writers := 0
	for path, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			write, ok := n.(*ast.SelectorExpr)
			if !ok || write.Sel.Name != "Patch" && write.Sel.Name != "Update" {
				return true
			}
			call, ok := write.X.(*ast.CallExpr)
			if !ok {
				return true
			}
			if of, ok := call.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Status" {
				writers++
				if path != "../../internal/cluster/apply/status.go" {
					t.Errorf("%s writes a status: use apply.PatchStatus", path)
				}
			}
			return true
		})
	}
	if writers == 0 {
		t.Error("nobody writes a status")
	}
}

// What one provider does and another does not is an interface of its builder.
func TestOnlyTheChoiceOfABuilderComparesProviders(t *testing.T) {
	provider := func(e ast.Expr) bool {
		if selector, ok := e.(*ast.SelectorExpr); ok {
			e = selector.Sel
		}
		name, ok := e.(*ast.Ident)
		return ok && (strings.HasPrefix(name.Name, "ProviderGrove") || strings.HasPrefix(name.Name, "ProviderComponent") || strings.HasPrefix(name.Name, "WorkloadProvider"))
	}
	for path, file := range sources(t, "internal/core/workload/orchestrator") {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && (provider(n.X) || provider(n.Y)) {
					t.Errorf("%s compares a provider: ask its builder for an interface of package workload", path)
				}
			case *ast.CaseClause:
				if slices.ContainsFunc(n.List, provider) {
					t.Errorf("%s switches over providers: ask the builder for an interface of package workload", path)
				}
			}
			return true
		})
	}
}

// The keys of an orchestrator's labels are its library's.
func TestLabelKeysOfOrchestratorsAreNotSpelledOut(t *testing.T) {
	for path, file := range sources(t, "internal/mocker", "internal/cli") {
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if ok && text.Kind == token.STRING && (strings.HasPrefix(text.Value, `"grove.io/`) || strings.HasPrefix(text.Value, `"leaderworkerset.sigs.k8s.io/`)) {
				t.Errorf("%s spells %s out: use the constant of the library", path, text.Value)
			}
			return true
		})
	}
}
