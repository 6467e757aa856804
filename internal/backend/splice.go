package backend

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// pythonProgram is a python interpreter, with or without a path.
var pythonProgram = regexp.MustCompile(`^(.*/)?python\d*(\.\d+)*$`)

// execForm reports whether a command starts python itself, without a shell.
func execForm(command []string) bool {
	return len(command) > 0 && pythonProgram.MatchString(command[0])
}

// flags are words to add to an engine's own arguments. shell says that they
// hold something that only a shell expands.
type flags struct {
	words []string
	shell bool
}

// splice adds flags to an engine's command line, in whichever form that is
// written. A command that does not launch the engine is left as it is.
func splice(engine graph.Engine, command, args []string, f flags) (newCommand, newArgs []string) {
	if execForm(command) {
		if !f.shell {
			return command, append(slices.Clone(args), f.words...)
		}
		line := "exec " + commandline.Join(slices.Concat(command, args)) + " " + strings.Join(f.words, " ")
		return []string{"sh", "-c"}, []string{line}
	}
	insert := func(script string) string { return insertFlags(engine, script, f.words) }
	if changed, ok := changeFirst(args, insert); ok {
		return command, changed
	}
	if changed, ok := changeFirst(command, insert); ok {
		return changed, args
	}
	return command, args
}

// changeFirst rewrites the first word that change has something to say about.
func changeFirst(words []string, change func(string) string) ([]string, bool) {
	for i, word := range words {
		if changed := change(word); changed != word {
			words = slices.Clone(words)
			words[i] = changed
			return words, true
		}
	}
	return words, false
}

// modules find the module name of each launch of an engine in a script.
var modules = map[graph.Engine]*regexp.Regexp{
	graph.EngineVLLM:   moduleOf(graph.EngineVLLM),
	graph.EngineSGLang: moduleOf(graph.EngineSGLang),
	graph.EngineTRTLLM: moduleOf(graph.EngineTRTLLM),
}

func moduleOf(e graph.Engine) *regexp.Regexp {
	return regexp.MustCompile(`python[0-9.]*\s+[^|&;]*?-m\s+dynamo\.` + string(e) + `[^\s|&;]*`)
}

// insertFlags puts flags right behind the module name of every launch.
func insertFlags(engine graph.Engine, script string, words []string) string {
	return modules[engine].ReplaceAllStringFunc(script, func(launch string) string {
		return launch + " " + strings.Join(words, " ")
	})
}

// arguments reads an engine's arguments out of a command line in any form.
func arguments(engine graph.Engine, command, args []string) commandline.Args {
	words := slices.Concat(command, args)
	if execForm(command) {
		return commandline.NewLooseArgs(words)
	}
	for _, word := range words {
		if !modules[engine].MatchString(word) {
			continue
		}
		if found := launchWords(engine, word); found != nil {
			return commandline.NewLooseArgs(found)
		}
	}
	return commandline.NewLooseArgs(strings.Fields(strings.Join(words, " ")))
}

// launchWords are the words of the simple command that launches the engine.
func launchWords(engine graph.Engine, script string) []string {
	parsed, err := commandline.Parse(script)
	if err != nil {
		return nil
	}
	for _, simple := range parsed.Simples() {
		var words []string
		for _, word := range simple.Words {
			text, static := word.Static()
			if !static {
				text = "$" // known only when it runs; no number that we look for
			}
			words = append(words, text)
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "dynamo."+string(engine)) }) {
			return words
		}
	}
	return nil
}
