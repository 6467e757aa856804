package commandline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
)

// texts are the words of each call: their text, or in <> what a shell expands.
func texts(source string, calls []*syntax.CallExpr) [][]string {
	var out [][]string
	for _, call := range calls {
		var words []string
		for _, word := range call.Args {
			text, static := Static(word)
			if !static {
				text = "<" + Source(source, word) + ">"
			}
			words = append(words, text)
		}
		out = append(out, words)
	}
	return out
}

func TestCalls(t *testing.T) {
	cases := map[string]struct {
		source string
		want   [][]string
	}{
		"words are cut at blanks":                     {"a  b\tc", [][]string{{"a", "b", "c"}}},
		"the empty string has none":                   {" \n ", nil},
		"a backslash at the line end joins lines":     {"a \\\n  b \\\n c\n", [][]string{{"a", "b", "c"}}},
		"newlines and semicolons separate":            {"a\nb; c", [][]string{{"a"}, {"b"}, {"c"}}},
		"comments run to the line end":                {"a # b\n# c\nd#e", [][]string{{"a"}, {"d#e"}}},
		"single quotes protect everything":            {`a 'b $c "d"'`, [][]string{{"a", `b $c "d"`}}},
		"double quotes expand and join":               {`"a $b"'c' "d"'e'`, [][]string{{`<"a $b"'c'>`, "de"}}},
		"backslash quotes one character":              {`a\ b \$c "\$d\n" \~`, [][]string{{"a b", "$c", `$d\n`, "~"}}},
		"assignments before a command are not words":  {"A=1 B='x y' cmd C=2", [][]string{{"cmd", "C=2"}}},
		"pipes and redirections":                      {"a 2>&1 | tee /tmp/l", [][]string{{"a"}, {"tee", "/tmp/l"}}},
		"and, or":                                     {"a && b ||\n c", [][]string{{"a"}, {"b"}, {"c"}}},
		"background":                                  {"a & b", [][]string{{"a"}, {"b"}}},
		"a lone dollar is literal":                    {"a$ $", [][]string{{"a$", "$"}}},
		"substitutions have calls of their own":       {"-H $(echo $L | sed 's/a/b/') `b c`", [][]string{{"-H", "<$(echo $L | sed 's/a/b/')>", "<`b c`>"}}},
		"conditions and branches":                     {"if a; then b; elif c; then d; else e; fi", [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}},
		"loops":                                       {"for w in a $B; do c $w; done; until g >/dev/null; do s 2; done", [][]string{{"c", "<$w>"}, {"g"}, {"s", "2"}}},
		"cases":                                       {"case $1 in a|b) x ;; (*) y; esac", [][]string{{"x"}, {"y"}}},
		"groups, subshells and functions":             {"{ a; b; } && (c; ! d); f() { e; }", [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}},
		"a here-document is no command":               {"cat <<EOF | sh\nx $Y\nEOF\nb", [][]string{{"cat"}, {"sh"}, {"b"}}},
		"braces inside words are literal":             {`a --c {"x":1}`, [][]string{{"a", "--c", "{x:1}"}}},
		"reserved words are ordinary as arguments":    {"echo if then done", [][]string{{"echo", "if", "then", "done"}}},
		"equals signs in flags are no assignments":    {"--a=b x", [][]string{{"--a=b", "x"}}},
		"a redirection may come first":                {">f a", [][]string{{"a"}}},
		"a path with a tilde is one word":             {"cp a ~/.ssh/b", [][]string{{"cp", "a", "~/.ssh/b"}}},
		"an empty quoted word is a word":              {"ssh-keygen -N ''", [][]string{{"ssh-keygen", "-N", ""}}},
		"variables in the middle of a word":           {"--a=$L:6379", [][]string{{"<--a=$L:6379>"}}},
		"quotes of C are expanded":                    {`a $'b\n'`, [][]string{{"a", `<$'b\n'>`}}},
		"a launch keeps its place in what is written": {`cd /w && if [ -n "$A" ]; then exec python3 -m dynamo.vllm --model $M | tee /tmp/l; fi`, [][]string{{"cd", "/w"}, {"[", "-n", `<"$A">`, "]"}, {"exec", "python3", "-m", "dynamo.vllm", "--model", "<$M>"}, {"tee", "/tmp/l"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file, err := Parse(c.source)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, texts(c.source, Calls(file))); diff != "" {
				t.Errorf("calls of %q (-want +got):\n%s", c.source, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, source := range map[string]string{
		"an open single quote":         "a 'b",
		"an open double quote":         `a "b`,
		"an open substitution":         "a $(b",
		"an open parameter":            "a ${b",
		"a pipe into nothing":          "a |",
		"a list operator without left": "&& a",
		"if without fi":                "if a; then b",
		"done without do":              "done",
		"a stray parenthesis":          "a )",
		"a redirection to nothing":     "a >",
		"a mark of the parser's own":   "a '\u0080'",
		"bottomless nesting":           strings.Repeat("$(", 1<<20),
		"bottomless groups":            strings.Repeat("(", 1<<20),
		"bottomless conditions":        strings.Repeat("if ", 1<<20),
		"bottomless arithmetic":        "$((" + strings.Repeat("~", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(source); err == nil {
				t.Errorf("Parse(%.40q) succeeds", source)
			}
		})
	}
}

func TestQuoteIsReadBackAsOneWord(t *testing.T) {
	for _, word := range []string{"", "plain", "Qwen/Qwen3-0.6B", "a b", "it's", `{"a": "$B"}`, "$(x)", "~", "a\nb", "#x", "é"} {
		file, err := Parse("x " + Quote(word))
		if err != nil {
			t.Errorf("Parse of Quote(%q) = %q: %v", word, Quote(word), err)
			continue
		}
		if diff := cmp.Diff([][]string{{"x", word}}, texts("", Calls(file))); diff != "" {
			t.Errorf("Quote(%q) = %q is read otherwise (-want +got):\n%s", word, Quote(word), diff)
		}
	}
	if got := Join([]string{"python3", "-m", "a b"}); got != "python3 -m 'a b'" {
		t.Errorf("Join = %q", got)
	}
}

func FuzzShell(f *testing.F) {
	for _, seed := range []string{
		`python3 -m dynamo.vllm --model "$M" 2>&1 | tee /tmp/l`,
		"A=1 b; if a; then b; else c; fi",
		`x $(echo "$L" | sed 's/\./-1\./') $(( 4 * $((I + 1)) )) ${A:-b}`,
		"cat <<EOF\n$x\nEOF\n", "case a in b|c) d;; esac", "until a; do b; done & { c; }",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		source = strings.ReplaceAll(source, "\r", "") // "\r\n" is read as "\n"
		file, err := Parse(source)
		if err != nil {
			return
		}
		for _, call := range Calls(file) {
			var words []string
			last := uint(0)
			for _, word := range call.Args {
				start, end := word.Pos().Offset(), word.End().Offset()
				if start < last || end < start || int(end) > len(source) {
					t.Fatalf("Parse(%q): word at %d..%d after %d", source, start, end, last)
				}
				last = end
				if text, static := Static(word); static {
					words = append(words, text)
				}
			}
			// What was read survives quoting and a second reading.
			again, err := Parse("x " + Join(words))
			if err != nil {
				t.Fatalf("Join(%q) cannot be parsed: %v", words, err)
			}
			if diff := cmp.Diff([][]string{append([]string{"x"}, words...)}, texts("", Calls(again))); diff != "" {
				t.Fatalf("quoting lost something (-want +got):\n%s", diff)
			}
		}
	})
}
