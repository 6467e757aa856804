package blueprint

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
)

// line is an engine's command line, whichever way its container spells it: a
// command with arguments, or a string for a shell. What is not an argument of
// the engine is kept word for word.
type line struct {
	words []string // as they stand: in a string for a shell, with their quotes
	shell bool
	write func([]string)
}

// openLine finds the engine's arguments in a container: those after the module.
func openLine(c *corev1.Container) *line {
	for _, place := range []*[]string{&c.Args, &c.Command} {
		words := *place
		for i, word := range words {
			if l := openScript(words, i, word); l != nil {
				return l
			}
		}
	}
	if at := module(c.Args); at > 0 {
		head := slices.Clone(c.Args[:at])
		return &line{words: slices.Clone(c.Args[at:]), write: func(w []string) { c.Args = slices.Concat(head, w) }}
	}
	return &line{words: slices.Clone(c.Args), write: func(w []string) { c.Args = w }}
}

// module is the place after "-m dynamo.engine", or 0.
func module(words []string) int {
	for i := 1; i < len(words); i++ {
		if words[i-1] == "-m" && strings.HasPrefix(words[i], "dynamo.") {
			return i + 1
		}
	}
	return 0
}

// openScript opens the call of the engine within a string for a shell, if word
// is one.
func openScript(words []string, i int, script string) *line {
	if !strings.Contains(script, "-m dynamo.") {
		return nil
	}
	parsed, err := commandline.Parse(script)
	if err != nil {
		return nil
	}
	for _, call := range commandline.Calls(parsed) {
		var texts []string
		for _, word := range call.Args {
			texts = append(texts, commandline.Source(script, word))
		}
		at := module(texts)
		if at == 0 {
			continue
		}
		before, after := script[:call.Args[at-1].End().Offset()], script[call.Args[len(texts)-1].End().Offset():]
		return &line{words: slices.Clone(texts[at:]), shell: true, write: func(w []string) {
			words[i] = before + strings.Join(append([]string{""}, w...), " ") + after
		}}
	}
	return nil
}

func (l *line) close() { l.write(l.words) }

func (l *line) plain(word string) string { return strings.Trim(word, `"'`) }

func (l *line) isFlag(word string) bool {
	word = l.plain(word)
	return strings.HasPrefix(word, "--") || len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9')
}

// find returns where a flag stands and how many words it takes.
func (l *line) find(valued bool, names []string) (at, n int) {
	for i, word := range l.words {
		name, _, inline := strings.Cut(l.plain(word), "=")
		// vLLM equates the two in flags.
		if !slices.Contains(names, name) && !slices.Contains(names, strings.ReplaceAll(name, "_", "-")) {
			continue
		}
		if valued && !inline && i+1 < len(l.words) && !l.isFlag(l.words[i+1]) {
			return i, 2
		}
		return i, 1
	}
	return -1, 0
}

// value is a flag's value, if it is there.
func (l *line) value(names ...string) (string, bool) {
	at, n := l.find(true, names)
	switch {
	case at < 0:
		return "", false
	case n == 2:
		return l.plain(l.words[at+1]), true
	default:
		_, value, inline := strings.Cut(l.plain(l.words[at]), "=")
		return value, inline
	}
}

// drop removes a flag under all its names, with its value if it takes one.
func (l *line) drop(valued bool, names ...string) {
	for {
		at, n := l.find(valued, names)
		if at < 0 {
			return
		}
		l.words = slices.Delete(l.words, at, at+n)
	}
}

// set gives a flag a value, where it stands or at the end, under its first name.
func (l *line) set(value string, names ...string) {
	at, n := l.find(true, names)
	words := []string{names[0], l.quoted(value)}
	if at < 0 {
		l.words = append(l.words, words...)
		return
	}
	rest := slices.Clone(l.words[at+n:])
	l.words = append(l.words[:at:at], words...)
	tail := &line{words: rest}
	tail.drop(true, names...)
	l.words = append(l.words, tail.words...)
}

// toggle puts a flag without a value there, or takes it away.
func (l *line) toggle(on bool, name string) {
	at, _ := l.find(false, []string{name})
	switch {
	case on && at < 0:
		l.words = append(l.words, name)
	case !on:
		l.drop(false, name)
	}
}

func (l *line) quoted(value string) string {
	if l.shell {
		return commandline.Quote(value)
	}
	return value
}
