package mocker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/frontend"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/worker"
)

// published is where the manifests of 2026 lie, beside the repository.
const published = "../../../shared/corpus-2026"

// object is any part of a manifest.
type object = map[string]any

func at(o object, path ...string) object {
	for _, key := range path {
		o, _ = o[key].(object)
	}
	return o
}

func list(o object, key string) []object {
	var out []object
	items, _ := o[key].([]any)
	for _, item := range items {
		if i, ok := item.(object); ok {
			out = append(out, i)
		}
	}
	return out
}

func words(o object, key string) []string {
	var out []string
	items, _ := o[key].([]any)
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

func entry(o object, key string) string { s, _ := o[key].(string); return s }

// played is a container as a node would start it.
type played struct {
	where string
	words []string
	env   podenv.Env
}

// containers are those of the graphs in a document, of either version.
func containers(file string, document object) []played {
	if entry(document, "kind") != "DynamoGraphDeployment" {
		return nil
	}
	spec, name := at(document, "spec"), entry(at(document, "metadata"), "name")
	var out []played
	add := func(component, kind string, c object, shared ...[]object) {
		env := podenv.Env{"HOME": "/root", "DYN_COMPONENT": kind, "DYN_SYSTEM_PORT": "9090", "DYN_NAMESPACE": "ns-" + name,
			"DYN_NAMESPACE_WORKER_SUFFIX": "1f2e", "DYN_FORWARDPASS_METRIC_PORT": "20380", "DYNAMO_CONTAINER_IMAGE": entry(c, "image")}
		for _, variables := range append(shared, list(c, "env")) {
			for _, v := range variables {
				env[entry(v, "name")] = entry(v, "value")
			}
		}
		if gpus := at(c, "resources", "limits")["nvidia.com/gpu"]; gpus != nil {
			env["DYNAMO_GPUS"] = fmt.Sprint(gpus)
		}
		line := slices.Concat(words(c, "command"), words(c, "args"))
		if kind == "frontend" && len(words(c, "command")) == 0 && len(line) > 0 && strings.HasPrefix(line[0], "-") {
			line = append([]string{"python3"}, line...) // the operator's own command
		}
		out = append(out, played{where: fmt.Sprintf("%s %s/%s %s", file, name, component, entry(c, "name")), words: expand(line, env), env: env})
	}
	for _, component := range list(spec, "components") {
		pod := at(component, "podTemplate", "spec")
		for _, c := range slices.Concat(list(pod, "initContainers"), list(pod, "containers")) {
			kind := entry(component, "type")
			if entry(c, "name") == entry(component, "frontendSidecar") && entry(c, "name") != "" {
				kind = "frontend"
			}
			add(entry(component, "name"), kind, c, list(spec, "env"))
		}
	}
	for _, service := range slices.Sorted(maps.Keys(at(spec, "services"))) {
		s := at(spec, "services", service)
		pod := at(s, "extraPodSpec")
		if main := at(pod, "mainContainer"); main != nil {
			add(service, entry(s, "componentType"), main, list(spec, "envs"), list(s, "envs"))
		}
		for _, c := range slices.Concat(list(pod, "initContainers"), list(pod, "containers")) {
			add(service, entry(s, "componentType"), c, list(spec, "envs"), list(s, "envs"))
		}
		if sidecar := at(s, "frontendSidecar"); sidecar != nil {
			add(service+" sidecar", "frontend", sidecar, list(sidecar, "envs"))
		}
	}
	return out
}

var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// expand replaces $(NAME), as a node does before it starts a container.
func expand(in []string, env podenv.Env) []string {
	var out []string
	for _, word := range in {
		out = append(out, reference.ReplaceAllStringFunc(word, func(r string) string {
			if value, ok := env[r[2:len(r)-1]]; ok {
				return value
			}
			return r
		}))
	}
	return out
}

// What a reader of the command line would say that it runs.
var (
	runs  = regexp.MustCompile(`-m\s+([a-z_]+(?:\.[a-z_]+)*)|(?:^|[\s/])(dynamo-[a-z]+-sidecar|vllm-rs)\b|([a-z_]+\.py)\b`)
	kinds = map[string]launch.Kind{
		"dynamo.frontend": launch.Frontend, "dynamo.vllm": launch.Worker, "dynamo.sglang": launch.Worker, "dynamo.trtllm": launch.Worker,
		"dynamo.mocker": launch.Worker, "dynamo.planner": launch.Planner, "dynamo.global_planner": launch.Planner, "dynamo.router": launch.Router,
		"dynamo.global_router": launch.GlobalRouter, "sglang.launch_server": launch.Engine, "vllm-rs": launch.Engine,
		"dynamo-vllm-sidecar": launch.Sidecar, "dynamo-sglang-sidecar": launch.Sidecar,
		"gpu_memory_service.cli.server": launch.MemoryService, "leader.py": launch.LeaderWait,
	}
	modelFlag = regexp.MustCompile(`--model(?:-path)?[\s=]+"?([A-Za-z0-9][\w./-]*)`)
	modeFlag  = regexp.MustCompile(`--disaggregation-mode[\s=]+"?(prefill|decode)`)
)

// check plays a container with a runner that only looks, and returns what it is.
func check(t *testing.T, c played, unknown map[string]int) (launch.Kind, error) {
	var (
		mu       sync.Mutex // a script may have programs run in the background
		programs []launch.Program
	)
	shell := launch.Shell{
		Log: slog.New(slog.DiscardHandler), Wait: func(context.Context, time.Duration) error { return nil },
		Run: func(_ context.Context, p launch.Program, _ launch.Streams) int {
			mu.Lock()
			defer mu.Unlock()
			programs = append(programs, p)
			return 0
		},
	}
	var said bytes.Buffer
	status := shell.Exec(t.Context(), c.words, c.env, launch.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &said})
	mu.Lock()
	defer mu.Unlock()
	programs = slices.DeleteFunc(programs, func(p launch.Program) bool { return p.Kind == launch.RayHead }) // in the background
	if status != 0 || len(programs) != 1 {
		return "", fmt.Errorf("status %d, %d programs: %s", status, len(programs), said.String())
	}
	p, line := programs[0], strings.Join(c.words, " ")
	if names := runs.FindAllStringSubmatch(line, -1); names != nil {
		want := launch.Script // of the user's own, unless a program of the runtime is named
		for _, name := range names {
			if kind, ok := kinds[name[1]+name[2]+name[3]]; ok {
				want = kind
			}
		}
		if p.Kind != want {
			return p.Kind, fmt.Errorf("played as %s, its command line says %s", p.Kind, want)
		}
	}
	switch p.Kind {
	case launch.Frontend:
		for _, warning := range frontend.Warnings(p) {
			unknown["dynamo.frontend "+warning]++
		}
		_, err := frontend.NewConfig(p)
		return p.Kind, err
	case launch.Worker:
		config, err := worker.NewConfig(p, worker.Knobs{Speedup: 1, Slowdown: 1})
		if err != nil {
			return p.Kind, err
		}
		for _, warning := range config.Warnings {
			unknown[p.Name+" "+warning]++
		}
		if m := modelFlag.FindStringSubmatch(line); len(m) > 1 && config.SourcePath != m[1] {
			return p.Kind, fmt.Errorf("serves %q, its command line says %q", config.SourcePath, m[1])
		}
		if m := modeFlag.FindStringSubmatch(line); len(m) > 1 && string(config.Role) != m[1] {
			return p.Kind, fmt.Errorf("its role is %s, its command line says %s", config.Role, m[1])
		}
	}
	return p.Kind, nil
}

// Every container of the graphs published in 2026 is one the mock engine can
// play, with its parameters.
func TestThePublishedContainersOf2026ArePlayed(t *testing.T) {
	if _, err := os.Stat(published); err != nil {
		t.Skipf("no manifests to try: %v", err)
	}
	counts, unknown := map[launch.Kind]int{}, map[string]int{}
	var all, played int
	err := filepath.WalkDir(published, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(body, []byte("\n---")) {
			var o object
			if yaml.Unmarshal(document, &o) != nil {
				t.Logf("left out: %s: a template, not a manifest", path)
				continue
			}
			for _, c := range containers(filepath.Base(path), o) {
				all++
				if len(c.words) == 0 && c.env["DYN_COMPONENT"] != "frontend" && c.env["DYN_COMPONENT"] != "epp" {
					t.Logf("left out: %s: no command; what its image runs is not known", c.where)
					continue
				}
				kind, err := check(t, c, unknown)
				if err != nil {
					t.Errorf("%s: %q: %v", c.where, c.words, err)
					continue
				}
				if kind == launch.Idle {
					t.Logf("left out: %s: idles: %q", c.where, c.words)
					continue
				}
				played++
				counts[kind]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d containers are played: %v", played, all, counts)
	for _, warning := range slices.Sorted(maps.Keys(unknown)) {
		t.Logf("%s (%d)", warning, unknown[warning])
	}
}

// rendered are what the original's 1.4.1 made of them, beside the repository.
const rendered = "../../../shared/reference-1.4"

// workloads are the containers of a rendered object, with the environment that
// was rendered for them and what their orchestrator adds.
func workloads(file, kind string, o any, out *[]played) {
	switch o := o.(type) {
	case object:
		if k := entry(o, "kind"); k != "" {
			kind = k
		}
		for _, c := range slices.Concat(list(o, "initContainers"), list(o, "containers")) {
			env := podenv.Env{
				"HOME": "/root", "LWS_LEADER_ADDRESS": "g-0.g.ns", "LWS_WORKER_INDEX": "1", "GROVE_PCSG_NAME": "g", "GROVE_PCSG_INDEX": "0",
				"GROVE_HEADLESS_SERVICE": "g-0.ns", "GROVE_PCLQ_POD_INDEX": "0", "DYNAMO_CONTAINER_IMAGE": entry(c, "image"),
			}
			for _, v := range list(c, "env") {
				env[entry(v, "name")] = entry(v, "value")
			}
			if gpus := at(c, "resources", "limits")["nvidia.com/gpu"]; gpus != nil {
				env["DYNAMO_GPUS"] = fmt.Sprint(gpus)
			}
			line := expand(slices.Concat(words(c, "command"), words(c, "args")), env)
			*out = append(*out, played{where: fmt.Sprintf("%s %s %s", file, kind, entry(c, "name")), words: line, env: env})
		}
		for key, value := range o {
			if key != "initContainers" && key != "containers" {
				workloads(file, kind, value, out)
			}
		}
	case []any:
		for _, value := range o {
			workloads(file, kind, value, out)
		}
	}
}

// What the original's operator makes of published manifests is played too, the
// nodes of groups included.
func TestTheContainersOfTheOriginalsOperatorArePlayed(t *testing.T) {
	if _, err := os.Stat(rendered); err != nil {
		t.Skipf("no objects to try: %v", err)
	}
	for _, path := range []string{"component", "grove"} {
		t.Run(path, func(t *testing.T) {
			counts, all := map[launch.Kind]int{}, 0
			err := filepath.WalkDir(filepath.Join(rendered, path), func(file string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() || filepath.Base(filepath.Dir(file)) == "own" {
					return err // own ones have programs of nobody's
				}
				body, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				var o any
				if err := yaml.Unmarshal(body, &o); err != nil {
					return err
				}
				var found []played
				for _, item := range items(o) {
					if slices.Contains([]string{"Deployment", "LeaderWorkerSet", "PodCliqueSet"}, entry(item, "kind")) {
						workloads(filepath.Base(file), "", item, &found)
					}
				}
				for _, c := range found {
					all++
					if why := unplayable(c); why != "" {
						t.Logf("left out: %s: %s", c.where, why)
						continue
					}
					kind, err := check(t, c, map[string]int{})
					if err != nil {
						t.Errorf("%s: %q: %v", c.where, c.words, err)
					}
					counts[kind]++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d containers: %v", all, counts)
		})
	}
}

// unplayable says why a rendered container cannot be held against its command.
func unplayable(c played) string {
	line := strings.Join(c.words, " ")
	switch {
	case len(c.words) == 0 && c.env["DYN_COMPONENT"] != "frontend" && c.env["DYN_COMPONENT"] != "epp":
		return "no command; what its image runs is not known"
	case strings.Contains(line, "elided"):
		return "its script is not in the recording"
	case line == "/bin/sh -c" || strings.HasPrefix(line, "/bin/sh -c --"):
		return "a shell without a script, or with a flag for one, ends at once: the original's default for a worker without a command"
	case strings.HasPrefix(line, "sh -c chmod"):
		return "prepares a folder and ends"
	}
	return ""
}

// items of a list, which may be one of Kubernetes or a bare one.
func items(o any) []object {
	if l, ok := o.(object); ok {
		return list(l, "items")
	}
	return list(object{"items": o}, "items")
}
