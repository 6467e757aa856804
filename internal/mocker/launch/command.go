package launch

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// shells are the names under which a shell is asked for.
var shells = []string{"sh", "bash", "dash", "ash", "zsh"}

// programs are commands of the runtime images that Shell plays, beside those
// that only start another (wrappers) and its own (builtins).
var programs = []string{
	"python", "python3", "env", "epp", "planner_sla", "ray", "sshd",
	"dynamo-vllm-sidecar", "dynamo-sglang-sidecar", "dynamo-trtllm-sidecar", "vllm", "vllm-rs", "trtllm-serve",
	"echo", "printf", "pwd", "test", "true", "false",
}

// Commands are the names of programs that the mock engine can be started as, in
// order. Its image has a link for each, so that a container whose command was
// written for a runtime's image starts there too.
func Commands() []string {
	names := slices.Concat(shells, programs, slices.Collect(maps.Keys(wrappers)), slices.Collect(maps.Keys(builtins)))
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" // ":", "[" and "." are words of a shell
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// Words are what a process has to run that was started with these arguments: all
// of them under the name of another program, and what follows its own.
func Words(arguments []string) []string {
	if len(arguments) == 0 {
		return nil
	}
	if slices.Contains(Commands(), path.Base(arguments[0])) {
		return arguments
	}
	return arguments[1:]
}
