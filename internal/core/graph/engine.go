package graph

import (
	"regexp"
	"slices"
	"strings"
)

// launches finds engine launches in a command line: a python interpreter that
// runs a Dynamo engine module, within one shell command.
var launches = map[Engine]*regexp.Regexp{
	EngineVLLM:   launchOf(EngineVLLM),
	EngineSGLang: launchOf(EngineSGLang),
	EngineTRTLLM: launchOf(EngineTRTLLM),
}

func launchOf(e Engine) *regexp.Regexp {
	return regexp.MustCompile(`python[0-9.]*\s+[^|&;]*-m\s+[^|&;]*dynamo\.` + string(e))
}

// engines are those that we know, in the order in which they are told.
var engines = [...]Engine{EngineSGLang, EngineTRTLLM, EngineVLLM}

// Engines lists the engines that a command line launches.
func Engines(command, args []string) []Engine {
	line := strings.Join(slices.Concat(command, args), " ")
	var found []Engine
	for _, e := range engines {
		// The plain searches are for speed: every reconcile over a graph comes by here.
		if strings.HasPrefix(line, "python3 -m dynamo."+string(e)) ||
			(strings.Contains(line, "dynamo."+string(e)) && launches[e].MatchString(line)) {
			found = append(found, e)
		}
	}
	return found
}

// chooseEngine prefers what the command says: it is what will run. The rules
// that refuse a contradiction are in package validation.
func chooseEngine(role Role, declared Engine, command, args []string) Engine {
	if !role.RunsEngine() {
		return EngineNone
	}
	if found := Engines(command, args); len(found) == 1 {
		return found[0]
	}
	return declared
}

// CompilationCache is where an engine keeps compiled kernels when the user does
// not say; empty when the engine has no such place.
func (e Engine) CompilationCache() string {
	if e == EngineVLLM {
		return "/root/.cache/vllm"
	}
	return ""
}

// Engine is the engine of a graph whose components run one and the same; none
// otherwise.
func (g *Graph) Engine() Engine {
	found := EngineNone
	for _, c := range g.Components {
		switch {
		case c.Engine == EngineNone || c.Engine == found:
		case found == EngineNone:
			found = c.Engine
		default:
			return EngineNone
		}
	}
	return found
}
