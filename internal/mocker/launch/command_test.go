package launch

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

func TestWordsByTheNameOfTheProcess(t *testing.T) {
	for name, c := range map[string]struct{ arguments, want []string }{
		"its own name is not of the command":    {[]string{"/dynamo-mocker", "python3", "-m", "dynamo.vllm"}, []string{"python3", "-m", "dynamo.vllm"}},
		"another name is the command":           {[]string{"python3", "-m", "dynamo.vllm"}, []string{"python3", "-m", "dynamo.vllm"}},
		"a path to another name too":            {[]string{"/bin/sh", "-c", "true"}, []string{"/bin/sh", "-c", "true"}},
		"arguments of the image's entrypoint":   {[]string{"/dynamo-mocker", "--pool-name", "p"}, []string{"--pool-name", "p"}},
		"a build of another name plays nothing": {[]string{"/tmp/a.out", "sh"}, []string{"sh"}},
		"nothing at all":                        {nil, nil},
	} {
		if diff := cmp.Diff(c.want, Words(c.arguments)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCommandsArePlayed(t *testing.T) {
	names := Commands()
	if !slices.IsSorted(names) {
		t.Error("the order changes from build to build")
	}
	for _, name := range []string{"python3", "python", "sh", "bash", "mpirun", "trtllm-llmapi-launch", "ray", "sshd", "sleep", "curl", "env", "true"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range names {
		if strings.ContainsAny(name, "/.:[") {
			t.Errorf("%q is no name of a file", name)
		}
	}
}

func TestPartsThatHaveProgramsOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		words []string
		kind  Kind
		name  string
	}{
		"a worker beside an engine":           {[]string{"dynamo-sglang-sidecar", "--sglang-endpoint", "127.0.0.1:30001"}, Worker, "dynamo.sglang"},
		"arguments of an entrypoint's Python": {[]string{"-m", "dynamo.frontend", "--router-mode", "direct"}, Frontend, "dynamo.frontend"},
	} {
		r := &recorder{}
		status := r.shell().Exec(t.Context(), c.words, podenv.Env{}, Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if status != 0 || len(r.programs) != 1 || r.programs[0].Kind != c.kind || r.programs[0].Name != c.name {
			t.Errorf("%s: status %d, %v", name, status, r.summary())
		}
	}
}
