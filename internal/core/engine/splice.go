package engine

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// flags are words to add to an engine's own arguments. shell says that they
// hold something that only a shell expands.
type flags struct {
	words []string
	shell bool
}

// splice adds flags to an engine's command line, in whichever form that is
// written. A command that does not launch the engine is left as it is, and then
// joined is false.
func splice(engine graph.Engine, command, args []string, f flags) (newCommand, newArgs []string, joined bool) {
	if direct(engine, command, args) {
		if !f.shell {
			return command, slices.Concat(args, f.words), true
		}
		line := "exec " + commandline.Join(slices.Concat(command, args)) + " " + strings.Join(f.words, " ")
		return []string{"sh", "-c"}, []string{line}, true
	}
	insert := func(script string) string { return insertFlags(engine, script, f.words) }
	if changed, ok := changeFirst(args, insert); ok {
		return command, changed, true
	}
	if changed, ok := changeFirst(command, insert); ok {
		return changed, args, true
	}
	return command, args, false
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

// launches find each launch of an engine in a script, from the interpreter to
// the end of the module's name.
var launches = map[graph.Engine]*regexp.Regexp{
	graph.EngineVLLM:   launchOf(graph.EngineVLLM),
	graph.EngineSGLang: launchOf(graph.EngineSGLang),
	graph.EngineTRTLLM: launchOf(graph.EngineTRTLLM),
}

func launchOf(e graph.Engine) *regexp.Regexp {
	return regexp.MustCompile(`(?:[^\s|&;]*/)?python[0-9.]*\s+[^|&;]*?-m\s+dynamo\.` + string(e) + `[^\s|&;]*`)
}

// insertFlags puts flags right behind the module name of every launch.
func insertFlags(engine graph.Engine, script string, words []string) string {
	return launches[engine].ReplaceAllStringFunc(script, func(launch string) string {
		return launch + " " + strings.Join(words, " ")
	})
}

// arguments reads an engine's arguments out of a command line in any form.
func arguments(engine graph.Engine, command, args []string) commandline.Args {
	words := slices.Concat(command, args)
	if direct(engine, command, args) {
		return commandline.NewLooseArgs(words)
	}
	for _, word := range words {
		if !launches[engine].MatchString(word) {
			continue
		}
		if found := launchWords(engine, word); found != nil {
			return commandline.NewLooseArgs(found)
		}
	}
	return commandline.NewLooseArgs(strings.Fields(strings.Join(words, " ")))
}

// launchWords are the words of the simple command that launches the engine. One
// that only the shell can expand stands as it is written.
func launchWords(engine graph.Engine, script string) []string {
	parsed, err := commandline.Parse(script)
	if err != nil {
		return nil
	}
	for _, call := range commandline.Calls(parsed) {
		var words []string
		for _, word := range call.Args {
			text, static := commandline.Static(word)
			if !static {
				text = commandline.Source(script, word)
			}
			words = append(words, text)
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, module(engine)) }) {
			return words
		}
	}
	return nil
}

func module(engine graph.Engine) string { return "dynamo." + string(engine) }
