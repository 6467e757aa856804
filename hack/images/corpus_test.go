package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// tree is an image's file system as a container runtime sees it.
type tree map[string]file

func newTree(files []file) tree {
	t := tree{}
	for _, f := range files {
		t["/"+f.path] = f
	}
	return t
}

// resolve follows links in every part of a path, as the kernel does, and says
// whether there is a program at its end.
func (t tree) resolve(name string) bool {
	for range 40 {
		leads := ""
		at := ""
		for part := range strings.SplitSeq(strings.TrimPrefix(path.Clean(name), "/"), "/") {
			at += "/" + part
			if f := t[at]; f.link != "" {
				leads = f.link
				break
			}
		}
		if leads == "" {
			return t[name].executable
		}
		rest := strings.TrimPrefix(path.Clean(name), at)
		if !path.IsAbs(leads) {
			leads = path.Join(path.Dir(at), leads)
		}
		name = path.Clean(leads + rest)
	}
	return false
}

// lookup finds a command as runc does: a path as it is, a name by PATH.
func (t tree) lookup(command string, env []string) bool {
	if strings.Contains(command, "/") {
		return t.resolve(command)
	}
	for _, variable := range env {
		folders, found := strings.CutPrefix(variable, "PATH=")
		for folder := range strings.SplitSeq(folders, ":") {
			if found && t.resolve(path.Join(folder, command)) {
				return true
			}
		}
	}
	return false
}

func mockerTree() tree {
	return newTree(append([]file{{path: version.Mocker, executable: true}}, links(version.Mocker)...))
}

func TestTheMockIsFoundByEveryName(t *testing.T) {
	t.Parallel()
	files, env := mockerTree(), environment(version.Mocker)
	for _, name := range append(launch.Commands(), "/bin/sh", "/usr/bin/python3", "/usr/local/bin/python3", "/bin/bash", "/usr/sbin/sshd", "/usr/bin/env", "/dynamo-mocker", "trtllm-llmapi-launch", "mpirun") {
		if !files.lookup(name, env) {
			t.Errorf("%s is not in the image", name)
		}
	}
	for _, name := range []string{"perl", "/opt/python3", "/usr/bin", "/bin/none"} {
		if files.lookup(name, env) {
			t.Errorf("%s is in the image", name)
		}
	}
	if before := newTree([]file{{path: version.Mocker, executable: true}}); before.lookup("python3", []string{"PATH=/"}) {
		t.Error("the test finds python3 in an image that holds one program")
	}
}

// container is what a kubelet starts, with what it is asked to run meanwhile.
type container struct {
	file, name string
	corev1.Container
}

// published are the containers of every manifest that others published: as the
// operator renders them, and as they are written where it does not know the API.
func published(t *testing.T) []container {
	t.Helper()
	var all []container
	for _, folder := range []string{"corpus", "corpus-2026"} {
		dir := filepath.Join(root, "..", "shared", folder)
		if _, err := os.Stat(dir); err != nil {
			t.Logf("%s is not there", folder)
			continue
		}
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, orchestrator := range []string{"auto", "grove"} {
				if rendered, ok := rendered(t, path, orchestrator); ok {
					all = append(all, containers(path+" on "+orchestrator, rendered)...)
				} else if orchestrator == "auto" {
					all = append(all, written(path, text)...)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) == 0 {
		t.Skip("no published manifests beside the repository")
	}
	return all
}

// rendered is what the operator makes of a manifest, if it takes it.
func rendered(t *testing.T, path, orchestrator string) (any, bool) {
	t.Helper()
	var out bytes.Buffer
	command := render.Command()
	command.SetArgs([]string{"-f", path, "-o", "json", "--orchestrator", orchestrator})
	command.SetOut(&out)
	command.SetErr(io.Discard)
	command.SilenceUsage, command.SilenceErrors = true, true
	if err := command.ExecuteContext(t.Context()); err != nil {
		return nil, false
	}
	var objects any
	if err := json.Unmarshal(out.Bytes(), &objects); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return objects, true
}

// written are the documents of a file as they stand.
func written(file string, text []byte) []container {
	var all []container
	for document := range bytes.SplitSeq(text, []byte("\n---")) {
		var object any
		if err := yaml.Unmarshal(document, &object); err == nil { // what cannot be read is a template
			all = append(all, containers(file, object)...)
		}
	}
	return all
}

// containers are those of every pod in an object, wherever it is: a graph's own
// copy of a pod is no pod yet.
func containers(file string, object any) []container {
	var all []container
	switch o := object.(type) {
	case map[string]any:
		if kind, _ := o["kind"].(string); strings.HasPrefix(kind, "Dynamo") && o["status"] == nil && strings.Contains(file, " on ") {
			return nil
		}
		for _, list := range []string{"containers", "initContainers"} {
			text, err := json.Marshal(o[list])
			var found []corev1.Container
			if err != nil || json.Unmarshal(text, &found) != nil {
				continue
			}
			for _, c := range found {
				all = append(all, container{file: file, name: c.Name, Container: c})
			}
		}
		for key, value := range o {
			if key != "containers" && key != "initContainers" {
				all = append(all, containers(file, value)...)
			}
		}
	case []any:
		for _, value := range o {
			all = append(all, containers(file, value)...)
		}
	}
	return all
}

// commands are all that a kubelet starts in a container.
func (c container) commands() [][]string {
	entry := c.Command
	if len(entry) == 0 {
		entry = []string{"/" + version.Mocker}
	}
	all := [][]string{slices.Concat(entry, c.Args)}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if probe != nil && probe.Exec != nil {
			all = append(all, probe.Exec.Command)
		}
	}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil && hook.Exec != nil {
				all = append(all, hook.Exec.Command)
			}
		}
	}
	return all
}

// TestPublishedManifestsRunInTheMocksImage because its file system is all that a
// kubelet has: every command of every container, of its probes and its hooks has to
// be there, and the mock has to know what to play.
func TestPublishedManifestsRunInTheMocksImage(t *testing.T) {
	t.Parallel()
	files, env := mockerTree(), environment(version.Mocker)
	started, distinct := map[string]int{}, map[string]bool{}
	for _, c := range published(t) {
		for n, words := range c.commands() {
			started[words[0]]++
			if !files.lookup(words[0], env) {
				t.Errorf("%s: container %s starts %q, which is not in the image", c.file, c.name, words[0])
				continue
			}
			key := strings.Join(words, "\x00") + "\x00" + component(c.Env)
			if n > 0 || distinct[key] {
				continue // probes ask a pod that is not here
			}
			distinct[key] = true
			if fragment(words) {
				continue
			}
			if missing := played(t, words, c.Env); missing != "" {
				t.Errorf("%s: container %s: %q: %s", c.file, c.name, words, missing)
			}
		}
	}
	t.Logf("%v, %d different command lines", started, len(distinct))
}

// fragment reports whether a command line is one of documentation that leaves the
// program out, which starts nothing in any image.
func fragment(words []string) bool {
	if words[0] == "/"+version.Mocker {
		return len(words) == 1
	}
	return slices.Equal(words, []string{"/bin/sh", "-c"}) || len(words) > 2 && words[1] == "-c" && strings.HasPrefix(words[2], "-")
}

func component(env []corev1.EnvVar) string {
	for _, e := range env {
		if e.Name == "DYN_COMPONENT" {
			return e.Value
		}
	}
	return ""
}

// played runs a command line up to the programs that it starts, and says what the
// mock does not know.
func played(t *testing.T, words []string, variables []corev1.EnvVar) string {
	t.Helper()
	env := podenv.Env{
		"LWS_LEADER_ADDRESS": "g-0.g.ns", "LWS_WORKER_INDEX": "1", "LWS_GROUP_SIZE": "2", "GROVE_PCSG_NAME": "g", "GROVE_PCSG_INDEX": "0",
		"GROVE_HEADLESS_SERVICE": "g-0.ns", "GROVE_PCLQ_POD_INDEX": "0", "GROVE_PCLQ_NAME": "g", "POD_IP": "10.0.0.2",
	}
	for _, pair := range environment(version.Mocker) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	for _, v := range variables {
		if _, known := env[v.Name]; !known {
			env[v.Name] = v.Value
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var kinds []launch.Kind
	var said bytes.Buffer
	shell := launch.Shell{
		Run: func(_ context.Context, p launch.Program, _ launch.Streams) int {
			kinds = append(kinds, p.Kind)
			return 0
		},
		Log:  slog.New(slog.NewTextHandler(&said, nil)),
		Wait: func(context.Context, time.Duration) error { return nil },
	}
	status := shell.Exec(ctx, launch.Words(words), env, launch.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &said})
	switch {
	case status != 0:
		return said.String()
	case slices.Contains(kinds, launch.Idle) && !slices.Contains(words, "sglang.launch_server") && !slices.Contains(words, "vllm.entrypoints.openai.api_server"):
		return "it idles: " + said.String()
	default:
		return ""
	}
}
