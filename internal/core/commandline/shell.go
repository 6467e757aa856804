package commandline

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxNesting bounds how deep a script can nest: the parser recurses, at up to
// 4 KiB of stack a level, and a script may be written by anybody who can create
// an object.
const maxNesting = 4096

// nesting matches whatever can begin a level. A script has at most as many
// levels as matches.
var nesting = regexp.MustCompile("[({\\[`?=~!&|-]|\\b(?:case|coproc|for|function|if|select|time|until|while)\\b")

// Parse reads a shell string as bash does. Functions, arrays and the like are
// read too; "$((" always begins arithmetic.
func Parse(source string) (*syntax.File, error) {
	if len(nesting.FindAllStringIndex(source, maxNesting+1)) > maxNesting {
		return nil, fmt.Errorf("shell syntax: more than %d operators", maxNesting)
	}
	if strings.ContainsAny(source, "\u0080\u0081") {
		return nil, errors.New("shell syntax: control character U+0080 or U+0081") // the parser's own marks
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(source), "sh")
	if err != nil {
		return nil, fmt.Errorf("shell syntax: %w", err)
	}
	return file, nil
}

// Calls returns every simple command of a script in source order, whatever it is
// nested in, substitutions excepted.
func Calls(file *syntax.File) []*syntax.CallExpr {
	var calls []*syntax.CallExpr
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if ok {
			calls = append(calls, call)
		}
		_, word := node.(*syntax.Word)
		return !ok && !word
	})
	return calls
}

// Source is a word as it is written in the source that was parsed.
func Source(source string, word *syntax.Word) string {
	return source[word.Pos().Offset():word.End().Offset()]
}

var (
	escape       = regexp.MustCompile(`(?s)\\(.)`)
	escapeQuoted = regexp.MustCompile("\\\\([$`\"\\\\])")
)

// Static returns a word's text when nothing in it needs expanding.
func Static(word *syntax.Word) (string, bool) { return static(word.Parts, escape) }

func static(parts []syntax.WordPart, escape *regexp.Regexp) (string, bool) {
	var text strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(escape.ReplaceAllString(p.Value, "$1"))
		case *syntax.SglQuoted:
			if p.Dollar { // $'\n' has escapes of its own
				return "", false
			}
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			inner, ok := static(p.Parts, escapeQuoted)
			if !ok {
				return "", false
			}
			text.WriteString(inner)
		default:
			return "", false
		}
	}
	return text.String(), true
}
