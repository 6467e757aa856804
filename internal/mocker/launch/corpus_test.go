package launch

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// shared is where manifests in the wild and their rendered objects are kept,
// beside the repository. Tests that need them are skipped without.
const shared = "../../../../shared"

// container is any object with a command or args.
type container struct {
	file          string
	command, args []string
}

func containers(t *testing.T, folder string) []container {
	t.Helper()
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no manifests to try: %v", err)
	}
	var out []container
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(text, []byte("\n---")) {
			var object any
			if err := yaml.Unmarshal(document, &object); err != nil {
				return nil // a template, not a manifest
			}
			collect(path, object, &out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func collect(file string, object any, out *[]container) {
	switch o := object.(type) {
	case map[string]any:
		command, args := stringList(o["command"]), stringList(o["args"])
		_, probe := o["exec"]
		if len(command)+len(args) > 0 && !probe {
			*out = append(*out, container{file: file, command: command, args: args})
		}
		for key, value := range o {
			if key != "exec" { // probes are run by the node
				collect(file, value, out)
			}
		}
	case []any:
		for _, value := range o {
			collect(file, value, out)
		}
	}
}

func stringList(value any) []string {
	list, _ := value.([]any)
	var out []string
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		out = append(out, text)
	}
	return out
}

var moduleName = regexp.MustCompile(`-m\s+([a-z_.]+)|([a-z_]+\.py)`)

// expected is what a reader of the manifest would say it runs.
func expected(c container) Kind {
	text := strings.Join(append(append([]string{}, c.command...), c.args...), " ")
	switch {
	case strings.Contains(text, "sshd"):
		return SSHDaemon
	case strings.Contains(text, "ray start --address"):
		return RayNode
	case strings.HasPrefix(text, "-pool-name"):
		return EndpointPicker
	}
	match := moduleName.FindStringSubmatch(text)
	if match == nil {
		// Args alone belong to a frontend, whose command is the operator's own.
		return Frontend
	}
	switch match[1] {
	case "":
		return Script
	case "dynamo.frontend":
		return Frontend
	case "dynamo.router":
		return Router
	case "dynamo.global_router":
		return GlobalRouter
	case "planner_sla":
		return Planner
	}
	return Worker
}

// kubelet expands $(NAME) as a node does before it starts a container.
func kubelet(words []string, env podenv.Env) []string {
	reference := regexp.MustCompile(`\$\(([A-Z_]+)\)`)
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = reference.ReplaceAllStringFunc(word, func(r string) string {
			if value, ok := env[r[2:len(r)-1]]; ok {
				return value
			}
			return r
		})
	}
	return out
}

func TestEveryManifestIsUnderstood(t *testing.T) {
	for _, folder := range []string{"corpus", "reference"} {
		t.Run(folder, func(t *testing.T) {
			seen := map[string]bool{}
			for _, c := range containers(t, filepath.Join(shared, folder)) {
				key, err := json.Marshal([][]string{c.command, c.args})
				if err != nil {
					t.Fatal(err)
				}
				if seen[string(key)] {
					continue
				}
				seen[string(key)] = true
				if strings.Contains(string(key), "profile_sla") || strings.Contains(string(key), "elided") {
					continue // a profiling Job and its side-car: another program's part
				}
				want := expected(c)
				env := podenv.Env{
					"HOME": "/root", "MODEL_PATH": "/m", "ENGINE_ARGS": "/e.yaml", "SERVED_MODEL_NAME": "m", "DYN_COMPONENT": "frontend",
					"LWS_LEADER_ADDRESS": "g-0.g.ns", "LWS_WORKER_INDEX": "1", "GROVE_PCSG_NAME": "g", "GROVE_PCSG_INDEX": "0",
					"GROVE_HEADLESS_SERVICE": "g-0.ns", "GROVE_PCLQ_POD_INDEX": "0",
				}
				if want == EndpointPicker {
					env["DYN_COMPONENT"] = "epp"
				}
				r := &recorder{}
				var errors bytes.Buffer
				words := kubelet(append(append([]string{}, c.command...), c.args...), env)
				status := r.shell().Exec(t.Context(), words, env, Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errors})
				r.programs = slices.DeleteFunc(r.programs, func(p Program) bool { return p.Kind == RayHead }) // in the background
				if status != 0 || len(r.programs) != 1 || r.programs[0].Kind != want {
					t.Errorf("%s: %q\nstatus %d, programs %v, want one %s\n%s", c.file, words, status, r.summary(), want, errors.String())
				}
			}
			t.Logf("%d different commands", len(seen))
		})
	}
}
