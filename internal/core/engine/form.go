package engine

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Shell is the command of a component that brings only arguments.
func Shell() []string { return []string{"/bin/sh", "-c"} }

// pythonProgram is a python interpreter, with or without a path.
var pythonProgram = regexp.MustCompile(`^(.*/)?python\d*(\.\d+)*$`)

// startsPython reports whether a command is a python interpreter.
func startsPython(command []string) bool {
	return len(command) > 0 && pythonProgram.MatchString(command[0])
}

// direct reports whether an engine is started without a shell: by python, or
// word for word behind another program, such as numactl.
func direct(engine graph.Engine, command, args []string) bool {
	if startsPython(command) {
		return true
	}
	words := slices.Concat(command, args)
	if script(words) >= 0 {
		return false
	}
	python := slices.IndexFunc(words, pythonProgram.MatchString)
	if python < 0 {
		return false
	}
	flag := slices.Index(words[python:], "-m") + python
	return flag > python && flag+1 < len(words) && strings.HasPrefix(words[flag+1], module(engine))
}

// scriptFlag is the flag behind which a shell expects a script: -c, -lc, -ec.
var scriptFlag = regexp.MustCompile(`^-[a-z]*c$`)

// script finds the word of a command line that a shell will read as a script;
// -1 where no shell is started or it is given none.
func script(words []string) int {
	if len(words) == 0 || !slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh"}, path.Base(words[0])) {
		return -1
	}
	for i, word := range words[1:] {
		switch {
		case scriptFlag.MatchString(word) && i+2 < len(words):
			return i + 2
		case !strings.HasPrefix(word, "-"):
			return -1
		}
	}
	return -1
}
