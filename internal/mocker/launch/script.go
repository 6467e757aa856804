package launch

import (
	"context"
	"os"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
)

// parse reads a shell string, and takes out of it what the interpreter does not
// do and a manifest can live without.
func parse(source string) (*syntax.File, error) {
	file, err := commandline.Parse(source)
	if err != nil {
		return nil, err
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			n.Redirs = slices.DeleteFunc(n.Redirs, unplayed)
		case *syntax.Assign:
			quoteEscapes(n.Value)
		case *syntax.CaseClause:
			quoteEscapes(n.Word)
		}
		return true
	})
	return file, nil
}

// unplayed are redirections other than of the standard streams, at which the
// interpreter panics.
func unplayed(r *syntax.Redirect) bool {
	if r.N != nil && !slices.Contains([]string{"0", "1", "2"}, r.N.Value) {
		return true
	}
	switch r.Op {
	case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplOut:
		return !slices.Contains([]string{"1", "2", "-"}, r.Word.Lit())
	}
	return true
}

// quoteEscapes writes "a\ b" as "a' b'": the interpreter leaves the backslash in
// words that are not split.
func quoteEscapes(word *syntax.Word) {
	if word == nil {
		return
	}
	var parts []syntax.WordPart
	for _, part := range word.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || !strings.Contains(lit.Value, `\`) {
			parts = append(parts, part)
			continue
		}
		plain, _, _ := strings.Cut(lit.Value, `\`)
		rest, _ := commandline.Static(&syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: lit.Value[len(plain):]}}})
		if plain != "" {
			parts = append(parts, &syntax.Lit{Value: plain})
		}
		parts = append(parts, &syntax.SglQuoted{Value: rest})
	}
	word.Parts = parts
}

// markLast marks the calls with which the statements end, whichever way they
// take.
func markLast(statements []*syntax.Stmt, calls map[syntax.Pos]bool) {
	if len(statements) == 0 || statements[len(statements)-1].Background {
		return
	}
	switch c := statements[len(statements)-1].Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) > 0 {
			calls[c.Args[0].Pos()] = true
		}
	case *syntax.BinaryCmd:
		if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt {
			markLast([]*syntax.Stmt{c.X}, calls)
		}
		markLast([]*syntax.Stmt{c.Y}, calls)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			markLast(c.Then, calls)
		}
	case *syntax.CaseClause:
		for _, item := range c.Items {
			markLast(item.Stmts, calls)
		}
	case *syntax.Block:
		markLast(c.Stmts, calls)
	case *syntax.Subshell:
		markLast(c.Stmts, calls)
	}
}

// playable replaces calls of the interpreter's own commands that cannot do here
// what they do in a container. It is an interp.CallHandlerFunc.
func playable(ctx context.Context, words []string) ([]string, error) {
	name, args := words[0], words[1:]
	switch {
	case interp.IsBuiltin(name) && slices.Contains(harmless, name):
		return []string{"true"}, nil
	case name == "test", name == "[":
		return withModels(interp.HandlerCtx(ctx).Env, words), nil
	case name == "type", name == "command" && len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return append([]string{"which"}, args...), nil
	case name == "wait": // for any one job is for all
		return append([]string{name}, slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })...), nil
	case name == "printf" && len(args) > 0 && strings.Contains(args[0], "%q"): // the interpreter has no %q
		words = []string{name, strings.ReplaceAll(args[0], "%q", "%s")}
		for _, arg := range args[1:] {
			words = append(words, commandline.Quote(arg))
		}
		return words, nil
	case name == "set":
		known, _, rest := options(args)
		if len(rest) > 0 || slices.Contains(args, "--") {
			known = slices.Concat(known, []string{"--"}, rest)
		}
		return append([]string{name}, known...), nil
	}
	return words, nil
}

// fileTests are the tests of a file's being there.
var fileTests = []string{"-e", "-f", "-r", "-s", "-d"}

// withModels takes for granted that a model's files are there: they are on no
// disk of this machine, and what looks for them before an engine starts would
// stop it for the lack of what the engine played here does not need.
func withModels(env expand.Environ, words []string) []string {
	words = slices.Clone(words)
	for i := 1; i+1 < len(words); i++ {
		if slices.Contains(fileTests, words[i]) && ofModel(env, words[i+1]) {
			if _, err := os.Stat(words[i+1]); err != nil {
				words[i] = "-n"
			}
		}
	}
	return words
}

// ofModel reports whether a path is one that a variable named after a model has,
// or lies below it.
func ofModel(env expand.Environ, path string) bool {
	found := false
	for name, v := range env.Each { // to the end: the interpreter's own does not stop early
		root := strings.TrimRight(v.String(), "/")
		found = found || strings.Contains(name, "MODEL") && root != "" && (path == root || strings.HasPrefix(path, root+"/"))
	}
	return found
}

// options reads the options of sh and of its set: those that matter here,
// whether -c is one, and what follows them. nounset does not matter: variables
// that an image sets are unset here.
func options(args []string) (known []string, reads bool, rest []string) {
	for len(args) > 0 && len(args[0]) > 1 && strings.IndexByte("-+", args[0][0]) >= 0 {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		if strings.HasPrefix(word, "--") { // --login, --norc
			continue
		}
		for _, letter := range word[1:] {
			switch {
			case letter == 'c':
				reads = true
			case letter == 'o' && len(args) > 0:
				if slices.Contains([]string{"allexport", "errexit", "pipefail", "xtrace"}, args[0]) {
					known = append(known, word[:1]+"o", args[0])
				}
				args = args[1:]
			case strings.ContainsRune("aex", letter):
				known = append(known, word[:1]+string(letter))
			}
		}
	}
	return known, reads, args
}
