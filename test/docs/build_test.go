package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestABuildShowsHowFarItIs with a go that takes its time: lines come while it runs,
// count what is done, and an error is shown whole.
func TestABuildShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs(filepath.Join(root, "hack", "build.sh"))
	if err != nil {
		t.Fatal(err)
	}
	const slow = `#!/usr/bin/env bash
case $1 in
list) echo "go: downloading example.com/a v1.0.0" >&2; sleep ${TAKES:-1.5}; printf 'a\nb\nc\n' ;;
build) echo a; echo b; sleep ${TAKES:-1.5}; [[ -z ${BROKEN:-} ]] || { echo "# c"; echo "./c.go:1:2: undefined: x"; exit 1; } ;;
esac
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(slow), 0o755); err != nil {
		t.Fatal(err)
	}
	build := func(env ...string) (string, error) {
		command := exec.CommandContext(t.Context(), script, "out", "-s", "./c")
		command.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TICK=1"), env...)
		command.Dir = dir
		text, err := command.CombinedOutput()
		return string(text), err
	}
	text, err := build()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, want := range []string{"modules fetched: 1, after ", "packages built: 2 of at most 3, after ", "built in "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// Neither of the two takes a tick, both do: one of them says so.
	if text, err = build("TICK=2", "TAKES=1.2"); err != nil || !strings.Contains(text, ", after ") {
		t.Errorf("silent for longer than a tick: %v: %s", err, text)
	}
	text, err = build("BROKEN=1")
	if err == nil || !strings.Contains(text, "./c.go:1:2: undefined: x") || strings.Contains(text, "built in") {
		t.Errorf("%v: %s", err, text)
	}
}
