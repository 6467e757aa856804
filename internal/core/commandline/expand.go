package commandline

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Expander turns words into text. Variables and command output come from the
// caller; nil functions mean "unset" and "no output".
type Expander struct {
	// Lookup returns a variable or special parameter ("?", "#", "1" ...).
	Lookup func(name string) (string, bool)
	// Assign serves ${NAME:=value}.
	Assign func(name, value string)
	// Output runs a command substitution and returns what it printed.
	Output func(Script) (string, error)
}

// ErrUnset is the failure of ${NAME:?message}.
var ErrUnset = errors.New("parameter not set")

// Fields expands words as arguments: unquoted expansions are split at blanks,
// and vanish when empty.
func (e Expander) Fields(words []Word) ([]string, error) {
	var out []string
	for _, w := range words {
		fields, err := e.fields(w)
		if err != nil {
			return nil, err
		}
		out = append(out, fields...)
	}
	return out, nil
}

// Text expands a word to one string, unsplit: the value of an assignment, the
// target of a redirection.
func (e Expander) Text(w Word) (string, error) {
	var b strings.Builder
	for i, part := range w.Parts {
		text, err := e.part(part, i == 0)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (e Expander) fields(w Word) ([]string, error) {
	var out []string
	var field strings.Builder
	present := false // an empty field counts only when quoted
	finish := func() {
		if present {
			out = append(out, field.String())
		}
		field.Reset()
		present = false
	}
	for i, part := range w.Parts {
		text, err := e.part(part, i == 0)
		if err != nil {
			return nil, err
		}
		if part.Kind == Literal || part.Quoted {
			field.WriteString(text)
			present = present || text != "" || part.Quoted
			continue
		}
		for j, piece := range strings.FieldsFunc(text, isFieldSeparator) {
			if j > 0 || startsWithSeparator(text) {
				finish()
			}
			field.WriteString(piece)
			present = true
		}
		if text != "" && isFieldSeparator(rune(text[len(text)-1])) {
			finish()
		}
	}
	finish()
	return out, nil
}

func isFieldSeparator(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

func startsWithSeparator(text string) bool {
	return text != "" && isFieldSeparator(rune(text[0]))
}

func (e Expander) part(p Part, first bool) (string, error) {
	switch p.Kind {
	case Parameter:
		return e.parameter(p)
	case CommandSubstitution:
		if e.Output == nil {
			return "", nil
		}
		out, err := e.Output(*p.Script)
		return strings.TrimRight(out, "\n"), err
	case Arithmetic:
		text, err := e.Text(*p.Expression)
		if err != nil {
			return "", err
		}
		n, err := evaluate(text, e.lookup)
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(n, 10), nil
	}
	if home, ok := e.lookup("HOME"); ok && first && !p.Quoted && (p.Text == "~" || strings.HasPrefix(p.Text, "~/")) {
		return home + p.Text[1:], nil
	}
	return p.Text, nil
}

func (e Expander) lookup(name string) (string, bool) {
	if e.Lookup == nil {
		return "", false
	}
	return e.Lookup(name)
}

func (e Expander) parameter(p Part) (string, error) {
	value, set := e.lookup(p.Text)
	operator := p.Operator
	if operator == "" {
		return value, nil
	}
	if operator == "length" {
		return strconv.Itoa(len([]rune(value))), nil
	}
	argument, err := e.Text(*p.Argument)
	if err != nil {
		return "", err
	}
	// With a colon, empty counts as unset.
	if strings.HasPrefix(operator, ":") {
		set = set && value != ""
		operator = operator[1:]
	}
	switch operator {
	case "-":
		if !set {
			return argument, nil
		}
	case "=":
		if !set {
			if e.Assign != nil {
				e.Assign(p.Text, argument)
			}
			return argument, nil
		}
	case "+":
		if set {
			return argument, nil
		}
		return "", nil
	case "?":
		if !set {
			return "", fmt.Errorf("%s: %w: %s", p.Text, ErrUnset, argument)
		}
	case "%", "%%":
		return trimSuffix(value, argument, operator == "%%"), nil
	case "#", "##":
		return trimPrefix(value, argument, operator == "##"), nil
	}
	return value, nil
}

func trimPrefix(value, pattern string, longest bool) string {
	best := -1
	for i := 0; i <= len(value); i++ {
		if Matches(pattern, value[:i]) {
			best = i
			if !longest {
				break
			}
		}
	}
	if best < 0 {
		return value
	}
	return value[best:]
}

func trimSuffix(value, pattern string, longest bool) string {
	best := -1
	for i := len(value); i >= 0; i-- {
		if Matches(pattern, value[i:]) {
			best = i
			if !longest {
				break
			}
		}
	}
	if best < 0 {
		return value
	}
	return value[:best]
}

// Matches says whether text fits a shell pattern ('*', '?', '[...]'), in which,
// unlike in file names, '*' also covers '/'.
func Matches(pattern, text string) bool {
	// path.Match stops '*' at '/', so both sides trade it for a byte no text holds.
	swap := strings.NewReplacer("/", "\x01")
	ok, err := path.Match(swap.Replace(pattern), swap.Replace(text))
	return err == nil && ok
}
