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

// launch is where a script launches an engine.
type launch struct {
	// start and end are those of the interpreter and of the module's name.
	start, end int
	// words are those of the whole command, and last is where it ends; none where the
	// launch is hidden in something else.
	words []string
	last  int
}

// launchesIn finds each launch of an engine in a script. Where its commands show none
// it may be in an array or in a quoted word, such as the script of a second shell.
func launchesIn(engine graph.Engine, script string) []launch {
	found := launchCalls(engine, script)
	if len(found) > 0 {
		return found
	}
	blanked := comment.ReplaceAllStringFunc(script, func(text string) string { return strings.Repeat(" ", len(text)) })
	for _, at := range launches[engine].FindAllStringIndex(blanked, -1) {
		starts := pythons.FindAllStringIndex(blanked[at[0]:at[1]], -1)
		found = append(found, launch{start: at[0] + starts[len(starts)-1][0], end: at[1]})
	}
	return found
}

// launchCalls are the simple commands of a script that launch an engine. A word that
// only the shell can expand stands as it is written.
func launchCalls(engine graph.Engine, script string) []launch {
	if !strings.Contains(script, module(engine)) {
		return nil // most words, and cheaper to see than to parse
	}
	parsed, err := commandline.Parse(script)
	if err != nil {
		return nil
	}
	var found []launch
	for _, call := range commandline.Calls(parsed) {
		var words []string
		for _, word := range call.Args {
			text, static := commandline.Static(word)
			if !static {
				text = commandline.Source(script, word)
			}
			words = append(words, text)
		}
		if first, name := launchAt(engine, words); name >= 0 {
			found = append(found, launch{
				start: int(call.Args[first].Pos().Offset()), end: int(call.Args[name].End().Offset()),
				words: words, last: int(call.Args[len(words)-1].End().Offset()),
			})
		}
	}
	return found
}

// launchAt finds the interpreter and the module's name among words; -1 where they
// launch nothing.
func launchAt(engine graph.Engine, words []string) (interpreter, name int) {
	interpreter = -1
	for i, word := range words {
		switch {
		case pythonProgram.MatchString(word):
			interpreter = i
		case interpreter >= 0 && words[i-1] == "-m" && strings.HasPrefix(word, module(engine)):
			return interpreter, i
		}
	}
	return -1, -1
}

// launches match a launch of an engine in any text, from an interpreter to the end of
// the module's name.
var launches = map[graph.Engine]*regexp.Regexp{
	graph.EngineVLLM:   launchOf(graph.EngineVLLM),
	graph.EngineSGLang: launchOf(graph.EngineSGLang),
	graph.EngineTRTLLM: launchOf(graph.EngineTRTLLM),
}

var (
	pythons = regexp.MustCompile(python)
	// comment is a line of its own.
	comment = regexp.MustCompile(`(?m)^[ \t]*#.*$`)
)

const (
	blanks = `(?:\\?\s)+` // a backslash joins two lines
	python = `(?:[^\s|&;"'(]*/)?python[0-9.]*` + blanks
)

func launchOf(e graph.Engine) *regexp.Regexp {
	return regexp.MustCompile(python + `[^|&;]*?-m` + blanks + `dynamo\.` + string(e) + `[\w.]*`)
}

// insertFlags puts flags right behind the module name of every launch.
func insertFlags(engine graph.Engine, script string, words []string) string {
	for _, l := range slices.Backward(launchesIn(engine, script)) {
		script = script[:l.end] + " " + strings.Join(words, " ") + script[l.end:]
	}
	return script
}

// arguments reads an engine's arguments out of a command line in any form.
func arguments(engine graph.Engine, command, args []string) commandline.Args {
	words := slices.Concat(command, args)
	if direct(engine, command, args) {
		return commandline.NewLooseArgs(words)
	}
	for _, word := range words {
		if found := launchCalls(engine, word); len(found) > 0 {
			return commandline.NewLooseArgs(found[0].words)
		}
	}
	return commandline.NewLooseArgs(strings.Fields(strings.Join(words, " ")))
}

func module(engine graph.Engine) string { return "dynamo." + string(engine) }
