// Package architecture tests what the layout promises and no compiler checks.
package architecture

import (
	"os/exec"
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
	rooms := []string{"mocker", "profiler", "operator/controller", "cli"}
	for program, own := range map[string]string{"dynamo-mocker": "mocker", "dynamo-profiler": "profiler"} {
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
