// Package architecture tests what the layout promises and no compiler checks.
package architecture

import (
	"os/exec"
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

// The linter sees to clocks and loggers; what a package reaches through others is
// seen only here.
func TestPurePackagesReachNoClient(t *testing.T) {
	pure := []string{
		"graph", "model", "fault", "snapshot", "validation", "workload/...", "render/...", "status", "commandline", "backend", "rollout", "cause",
		"request", "foreign", "manifest", "definition", "perfmodel", "profile/bundle", "profile/report", "profile/result", "profile/search",
	}
	forbidden := []string{"k8s.io/client-go/", "sigs.k8s.io/controller-runtime", module + "/internal/observe", module + "/internal/apply"}
	for _, name := range pure {
		for _, dep := range dependencies(t, "./internal/"+name) {
			for _, f := range forbidden {
				if strings.HasPrefix(dep, f) {
					t.Errorf("internal/%s reaches %s", name, dep)
				}
			}
		}
	}
}

func TestWhatWorksWithoutAClusterHasNoClient(t *testing.T) {
	for _, verb := range []string{"profile", "render", "validate"} {
		for _, dep := range dependencies(t, "./internal/cli/"+verb) {
			// Of client-go the types' scheme alone, which reaches nobody.
			if dep != "k8s.io/client-go/kubernetes/scheme" && (strings.HasPrefix(dep, "k8s.io/client-go/") || strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime") || strings.HasPrefix(dep, "k8s.io/apiserver")) {
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
