// Package program decides which program plays a container.
//
// It is pure: it looks at the image and the command line and names a binary, or
// says that nobody plays the container. It refuses to name anything but the
// product's own binaries, so that no pod can run a program of the host.
package program

import (
	"regexp"
	"slices"
	"strings"
)

// Mocker is the binary that plays every Dynamo runtime.
const Mocker = "dynamo-mocker"

// profiler answers requests for graphs, in the runtime's stead as well: it takes
// the same arguments and leaves the same files.
const profiler = "dynamo-profiler"

// profilerModules are those of the runtime's profiler, before and from 1.0 on, with
// the verb of ours that plays each.
var profilerModules = []struct{ module, verb string }{
	{"benchmarks.profiler.profile_sla", "profile-sla"},
	{"dynamo.profiler", "profile"},
}

// planner scales the graph that it is part of, in the runtime's stead as well.
const planner = "dynamo-planner"

// plannerCommand matches what starts the runtime's planner, before and from 1.0 on.
var plannerCommand = regexp.MustCompile(`(^|[\s;&|"'(])-m\s+(planner_sla|dynamo\.planner(\.[\w.]+)?|dynamo\.global_planner)([\s;&|"')]|$)`)

// ours are the images whose binary exists here; the binary has the image's name.
var ours = []string{"dynamo-operator", "kubectl-dynamo", "dynamo-activator", profiler}

// runtimeImages are the parts of an image's name that betray a Dynamo runtime.
// A placeholder such as ${IMAGE} stands for one in example manifests.
var runtimeImages = []string{"dynamo", "vllm", "sglang", "trtllm", "tensorrtllm", "tensorrt-llm", "mocker", "epp", "${"}

// runtimeCommand matches command lines that only a Dynamo runtime understands,
// whatever the image is called.
var runtimeCommand = regexp.MustCompile(`(^|[\s;&|"'(])(` +
	`-m\s+(dynamo|vllm|sglang|tensorrt_llm|planner_sla|benchmarks\.profiler)\b` +
	`|dynamo-(run|mocker)\b|vllm\s+serve\b|trtllm-(serve|llmapi-launch)\b|ray\s+start\b|mpirun\b|aiperf\b|/epp\b)`)

// Program is what a container's process runs. The zero Program means that nobody
// plays the container.
type Program struct {
	Binary string   // a binary of the bin folder
	Args   []string // everything after the program's name
}

// Played reports whether a process runs for the container.
func (p Program) Played() bool { return p.Binary != "" }

// For is the program of a container whose command and args are already expanded.
func For(image string, command, args []string) Program {
	name := repository(image)
	if base := name[strings.LastIndexByte(name, '/')+1:]; slices.Contains(ours, base) {
		// The image's entry point is the binary itself, so a command can only
		// repeat its name.
		if len(command) > 0 {
			command = command[1:]
		}
		return Program{Binary: base, Args: slices.Concat(command, args)}
	}
	line := slices.Concat(command, args)
	for _, p := range profilerModules {
		if i := slices.Index(line, p.module); i > 0 && line[i-1] == "-m" {
			return Program{Binary: profiler, Args: append([]string{p.verb}, line[i+1:]...)}
		}
	}
	// The original's image of this name holds its profiler too, so the name tells only
	// where no command does.
	bare := name[strings.LastIndexByte(name, '/')+1:] == planner
	switch {
	case plannerCommand.MatchString(strings.Join(line, " ")), bare && len(command) == 0:
		return Program{Binary: planner, Args: line}
	case bare && strings.TrimPrefix(command[0], "/") == planner:
		return Program{Binary: planner, Args: line[1:]}
	}
	if runtimeCommand.MatchString(strings.Join(line, " ")) || runtimeImage(name) {
		return Program{Binary: Mocker, Args: line}
	}
	return Program{}
}

func runtimeImage(name string) bool {
	return slices.ContainsFunc(runtimeImages, func(part string) bool { return strings.Contains(name, part) })
}

// repository is the image reference in lower case without tag and digest. The
// colon of a registry's port is no tag: a slash follows it.
func repository(image string) string {
	name, _, _ := strings.Cut(strings.ToLower(image), "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name
}
