package commandline

import (
	"fmt"
	"strconv"
	"strings"
)

// Args is an argument vector after the program name, as argparse-like programs
// read it: "--flag value", "--flag=value", "-tp 8", bare switches, and
// repetitions, of which the last one counts.
type Args struct {
	words []string
	// loose equates '_' and '-' in flag names, as vLLM's parser does.
	loose bool
}

// NewArgs reads words literally: "--max_num_seqs" is not "--max-num-seqs".
func NewArgs(words []string) Args { return Args{words: words} }

// NewLooseArgs reads words with '_' and '-' equated in flag names.
func NewLooseArgs(words []string) Args { return Args{words: words, loose: true} }

// Words returns the words as given.
func (a Args) Words() []string { return a.words }

// Value returns the value of the last occurrence of any of names. A flag that
// stands last, or before another flag, has no value and is not found.
func (a Args) Value(names ...string) (string, bool) {
	all := a.Values(names...)
	if len(all) == 0 {
		return "", false
	}
	return all[len(all)-1], true
}

// Values returns the value of every occurrence of any of names, in order.
func (a Args) Values(names ...string) []string {
	var out []string
	for i := 0; i < len(a.words); i++ {
		name, value, inline := a.split(a.words[i])
		if !a.isOneOf(name, names) {
			continue
		}
		switch {
		case inline:
			out = append(out, value)
		case i+1 < len(a.words) && !isFlag(a.words[i+1]):
			out = append(out, a.words[i+1])
			i++
		}
	}
	return out
}

// Switch says whether a boolean flag is on. "--flag" and "--flag=true" switch
// it on, "--no-flag" and "--flag=false" off; the last word wins.
func (a Args) Switch(name string, byDefault bool) bool {
	on := byDefault
	negated := "--no-" + strings.TrimPrefix(name, "--")
	for _, word := range a.words {
		flag, value, inline := a.split(word)
		switch {
		case a.isOneOf(flag, []string{name}):
			on = !inline || !strings.EqualFold(value, "false")
		case a.isOneOf(flag, []string{negated}):
			on = false
		}
	}
	return on
}

// Has says whether any of names occurs, with or without a value.
func (a Args) Has(names ...string) bool {
	for _, word := range a.words {
		if flag, _, _ := a.split(word); a.isOneOf(flag, names) {
			return true
		}
	}
	return false
}

// Int returns the integer value of any of names, or byDefault when absent.
func (a Args) Int(byDefault int, names ...string) (int, error) {
	text, ok := a.Value(names...)
	if !ok {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("argument %s: invalid int value: %q", strings.Join(names, "/"), text)
	}
	return n, nil
}

// Float returns the floating-point value of any of names, or byDefault.
func (a Args) Float(byDefault float64, names ...string) (float64, error) {
	text, ok := a.Value(names...)
	if !ok {
		return byDefault, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("argument %s: invalid float value: %q", strings.Join(names, "/"), text)
	}
	return f, nil
}

// Flags lists the names of all flags in order of first use, values stripped.
func (a Args) Flags() []string {
	var out []string
	seen := map[string]bool{}
	for _, word := range a.words {
		if !isFlag(word) {
			continue
		}
		if name, _, _ := a.split(word); !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// split takes a word apart at its '='. Words that are no flag have no name.
func (a Args) split(word string) (name, value string, inline bool) {
	if !isFlag(word) {
		return "", "", false
	}
	name, value, inline = strings.Cut(word, "=")
	if a.loose {
		name = hyphened(name)
	}
	return name, value, inline
}

func (a Args) isOneOf(name string, names []string) bool {
	if name == "" {
		return false
	}
	for _, candidate := range names {
		if a.loose {
			candidate = hyphened(candidate)
		}
		if name == candidate {
			return true
		}
	}
	return false
}

// hyphened leaves the part after a dot alone: in "--eplb-config.window_size"
// that is a key of a JSON object, not a flag name.
func hyphened(name string) string {
	head, tail, dotted := strings.Cut(name, ".")
	head = strings.ReplaceAll(head, "_", "-")
	if dotted {
		return head + "." + tail
	}
	return head
}

// isFlag: "-x" and "--x" are flags; "-", "--" and negative numbers are values.
func isFlag(word string) bool {
	if len(word) < 2 || word[0] != '-' || word == "--" {
		return false
	}
	if c := word[1]; c != '.' && (c < '0' || c > '9') {
		return true
	}
	_, err := strconv.ParseFloat(word, 64)
	return err != nil
}
