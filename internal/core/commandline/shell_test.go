package commandline

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outline writes a script in one line, so that a table can show its shape.
func outline(s Script) string {
	var parts []string
	for _, statement := range s.Statements {
		text := outlinePipeline(statement.First)
		for _, link := range statement.Rest {
			if link.Or {
				text += " || "
			} else {
				text += " && "
			}
			text += outlinePipeline(link.Pipeline)
		}
		if statement.Background {
			text += " &"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ; ")
}

func outlinePipeline(p Pipeline) string {
	var parts []string
	for _, command := range p.Commands {
		parts = append(parts, outlineCommand(command))
	}
	text := strings.Join(parts, " | ")
	if p.Negated {
		return "! " + text
	}
	return text
}

func outlineCommand(command Command) string {
	switch c := command.(type) {
	case *Simple:
		var parts []string
		for _, a := range c.Assignments {
			parts = append(parts, a.Name+"="+outlineWord(a.Value))
		}
		for _, w := range c.Words {
			parts = append(parts, "["+outlineWord(w)+"]")
		}
		for _, r := range c.Redirects {
			parts = append(parts, r.Operator+outlineWord(r.Target))
		}
		return strings.Join(parts, " ")
	case *If:
		var parts []string
		for _, b := range c.Branches {
			if b.Condition == nil {
				parts = append(parts, "else {"+outline(b.Body)+"}")
			} else {
				parts = append(parts, "if ("+outline(*b.Condition)+") {"+outline(b.Body)+"}")
			}
		}
		return strings.Join(parts, " ")
	case *For:
		var words []string
		for _, w := range c.Words {
			words = append(words, outlineWord(w))
		}
		return "for " + c.Name + " (" + strings.Join(words, " ") + ") {" + outline(c.Body) + "}"
	case *Loop:
		name := "while"
		if c.Until {
			name = "until"
		}
		return name + " (" + outline(c.Condition) + ") {" + outline(c.Body) + "}"
	case *Case:
		text := "case " + outlineWord(c.Subject)
		for _, arm := range c.Arms {
			for _, p := range arm.Patterns {
				text += " " + outlineWord(p)
			}
			text += " {" + outline(arm.Body) + "}"
		}
		return text
	case *Group:
		if c.Subshell {
			return "(" + outline(c.Body) + ")"
		}
		return "{" + outline(c.Body) + "}"
	}
	return "?"
}

func outlineWord(w Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p.Kind {
		case Parameter:
			b.WriteString("<" + p.Text + p.Operator)
			if p.Argument != nil {
				b.WriteString(outlineWord(*p.Argument))
			}
			b.WriteString(">")
		case CommandSubstitution:
			b.WriteString("<(" + outline(*p.Script) + ")>")
		case Arithmetic:
			b.WriteString("<=" + outlineWord(*p.Expression) + ">")
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestParse(t *testing.T) {
	cases := map[string]struct{ source, want string }{
		"words are cut at blanks":                       {"a  b\tc", "[a] [b] [c]"},
		"the empty string is an empty script":           {" \n ", ""},
		"a backslash at the line end joins lines":       {"a \\\n  b \\\n c\n", "[a] [b] [c]"},
		"newlines and semicolons separate":              {"a\nb; c", "[a] ; [b] ; [c]"},
		"comments run to the line end":                  {"a # b\n# c\nd#e", "[a] ; [d#e]"},
		"single quotes protect everything":              {`a 'b $c "d"'`, `[a] [b $c "d"]`},
		"double quotes expand and join":                 {`"a $b"'c'`, `[a <b>c]`},
		"backslash quotes one character":                {`a\ b \$c "\$d\n"`, `[a b] [$c] [$d\n]`},
		"assignments come before the command":           {"A=1 B='x y' cmd C=2", "A=1 B=x y [cmd] [C=2]"},
		"pipes and error redirection":                   {"a 2>&1 | tee /tmp/l", "[a] >&1 | [tee] [/tmp/l]"},
		"and, or":                                       {"a && b || c", "[a] && [b] || [c]"},
		"and at the line end continues":                 {"a &&\n b", "[a] && [b]"},
		"background":                                    {"a & b", "[a] & ; [b]"},
		"parameters":                                    {`$A ${B} ${C:-x y} ${#D} $? $$`, "[<A>] [<B>] [<C:-x y>] [<Dlength>] [<?>] [<$>]"},
		"a lone dollar is literal":                      {"a$ $", "[a$] [$]"},
		"arithmetic may nest":                           {`--r $(( 4 * $((I + 1)) ))`, "[--r] [<= 4 * <=I + 1> >]"},
		"command substitution with a pipe and quotes":   {`-H $(echo "$L" | sed 's/\./-1\./')`, `[-H] [<([echo] [<L>] | [sed] [s/\./-1\./])>]`},
		"backquotes are command substitution":           {"a `b c`", "[a] [<([b] [c])>]"},
		"if, elif, else":                                {"if a; then b; elif c; then d; else e; fi", "if ([a]) {[b]} if ([c]) {[d]} else {[e]}"},
		"for over words":                                {"for w in a $B; do c $w; done; d", "for w (a <B>) {[c] [<w>]} ; [d]"},
		"until with redirections in the condition":      {"until g h >/dev/null 2>&1; do s 2; done", "until ([g] [h] >/dev/null >&1) {[s] [2]}"},
		"while over lines":                              {"while true\ndo\n a\ndone", "while ([true]) {[a]}"},
		"case with several patterns":                    {"case $1 in a|b) x ;; (*) y; esac", "case <1> a b {[x]} * {[y]}"},
		"groups and subshells":                          {"{ a; b; } && (c; d)", "{[a] ; [b]} && ([c] ; [d])"},
		"a negated pipeline":                            {"! a | b", "! [a] | [b]"},
		"a here-document is the target's text":          {"cat <<EOF | sh\nx $Y\n\\$z\nEOF\nb", "[cat] <<x <Y>\n$z\n | [sh] ; [b]"},
		"a quoted here-document is not expanded":        {"cat <<-'E' >f\n\tx $Y\n\tE\n", "[cat] <<-x $Y\n >f"},
		"braces inside words are literal":               {`a --c {"x":1}`, `[a] [--c] [{x:1}]`},
		"reserved words are ordinary as arguments":      {"echo if then done", "[echo] [if] [then] [done]"},
		"equals signs in flags are no assignments":      {"--a=b x", "[--a=b] [x]"},
		"a redirection may come first":                  {">f a", "[a] >f"},
		"both streams to a file are two redirections":   {"a &>f", "[a] >f >&1"},
		"a path with a tilde is one word":               {"cp a ~/.ssh/b", "[cp] [a] [~/.ssh/b]"},
		"an empty quoted word is a word":                {"ssh-keygen -N ''", "[ssh-keygen] [-N] []"},
		"variables in the middle of a word":             {"--a=$L:6379", "[--a=<L>:6379]"},
		"command substitution of a missing command":     {"$(LWS_WORKER_INDEX)", "[<([LWS_WORKER_INDEX])>]"},
		"substring removal":                             {"${A%%.*} ${B#*/}", "[<A%%.*>] [<B#*/>]"},
		"a substitution that begins with a subshell":    {"$((a); b)", "[<(([a]) ; [b])>]"},
		"a hash inside a word does not begin a comment": {"a=b#c d", "a=b#c [d]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			script, err := Parse(c.source)
			if err != nil {
				t.Fatalf("Parse(%q): %v", c.source, err)
			}
			if diff := cmp.Diff(c.want, outline(script)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", c.source, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, source := range map[string]string{
		"an open single quote":            "a 'b",
		"an open double quote":            `a "b`,
		"an open substitution":            "a $(b",
		"an open parameter":               "a ${b",
		"a pipe into nothing":             "a |",
		"a list operator without left":    "&& a",
		"if without fi":                   "if a; then b",
		"done without do":                 "done",
		"functions":                       "f() { a; }",
		"a here-document without its end": "cat <<E\nx\n",
		"a stray parenthesis":             "a )",
		"a redirection to nothing":        "a >",
		"bottomless nesting":              strings.Repeat("$(", 1000),
		"bottomless groups":               strings.Repeat("(", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(source)
			if _, ok := errors.AsType[*SyntaxError](err); !ok {
				t.Errorf("Parse(%.40q) = %v, want a syntax error", source, err)
			}
		})
	}
}

func TestFields(t *testing.T) {
	variables := map[string]string{
		"MODEL": "Qwen/Qwen3", "TWO": "a b", "EMPTY": "", "HOME": "/root", "I": "2",
		"L": "g-0.svc.ns", "FILE": "/x/y.tar.gz", "BAD": "x1",
	}
	cases := map[string]struct {
		source string
		want   []string
		fails  bool
	}{
		"unquoted values are split":                 {source: "$TWO", want: []string{"a", "b"}},
		"quoted values are not":                     {source: `"$TWO"`, want: []string{"a b"}},
		"unquoted empties vanish":                   {source: "a $EMPTY $UNSET b", want: []string{"a", "b"}},
		"quoted empties stay":                       {source: `a "$EMPTY" ''`, want: []string{"a", "", ""}},
		"splitting joins the neighbours":            {source: "x${TWO}y", want: []string{"xa", "by"}},
		"defaults":                                  {source: "${EMPTY:-d} ${EMPTY-d} ${UNSET-d} ${MODEL:-d}", want: []string{"d", "d", "Qwen/Qwen3"}},
		"alternatives":                              {source: "${MODEL:+yes}${UNSET+no}", want: []string{"yes"}},
		"a required value that is missing is wrong": {source: "${UNSET:?needed}", fails: true},
		"assigning defaults":                        {source: "${NEW:=v} $NEW", want: []string{"v", "v"}},
		"length and removal":                        {source: "${#MODEL} ${FILE##*/} ${FILE%.gz} ${FILE%%.*} ${FILE#/x}", want: []string{"10", "y.tar.gz", "/x/y.tar", "/x/y", "/y.tar.gz"}},
		"arithmetic knows names and nesting":        {source: "$(( 4 * $((I + 1)) )) $((I - 5)) $((7 / 2 % 2)) $(( (1 + 2) * -I ))", want: []string{"12", "-3", "1", "-6"}},
		"unset names count as zero":                 {source: "$((UNSET + 1))", want: []string{"1"}},
		"comparison yields one or zero":             {source: "$((I > 1 && I < 3)) $((I == 3 || !I))", want: []string{"1", "0"}},
		"arithmetic on words fails":                 {source: "$((BAD + 1))", fails: true},
		"division by zero fails":                    {source: "$((1 / 0))", fails: true},
		"a tilde is the home folder":                {source: `~/.ssh "~/.ssh" a~`, want: []string{"/root/.ssh", "~/.ssh", "a~"}},
		"command output is split and trimmed":       {source: `$(out) "$(out)"`, want: []string{"one", "two", "one two"}},
		"globs are left alone":                      {source: "*.yaml", want: []string{"*.yaml"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			script, err := Parse(c.source)
			if err != nil {
				t.Fatal(err)
			}
			local := map[string]string{}
			e := Expander{
				Lookup: func(name string) (string, bool) {
					if v, ok := local[name]; ok {
						return v, true
					}
					v, ok := variables[name]
					return v, ok
				},
				Assign: func(name, value string) { local[name] = value },
				Output: func(Script) (string, error) { return "one two\n\n", nil },
			}
			got, err := e.Fields(script.Simples()[0].Words)
			if c.fails {
				if err == nil {
					t.Fatalf("Fields(%q) = %q, want an error", c.source, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Fields(%q) (-want +got):\n%s", c.source, diff)
			}
		})
	}
}

func TestSimplesKeepTheirPlaceInTheSource(t *testing.T) {
	source := `cd /w && if [ -n "$A" ]; then exec python3 -m dynamo.vllm --model $M | tee /tmp/l; fi`
	script, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, simple := range script.Simples() {
		var words []string
		for _, w := range simple.Words {
			words = append(words, source[w.Start:w.End])
		}
		got = append(got, words)
	}
	want := [][]string{{"cd", "/w"}, {"[", "-n", `"$A"`, "]"}, {"exec", "python3", "-m", "dynamo.vllm", "--model", "$M"}, {"tee", "/tmp/l"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("source text of the words (-want +got):\n%s", diff)
	}
}

func TestQuoteIsReadBackAsOneWord(t *testing.T) {
	for _, word := range []string{"", "plain", "Qwen/Qwen3-0.6B", "a b", "it's", `{"a": "$B"}`, "$(x)", "~", "a\nb", "#x", "é"} {
		script, err := Parse("x " + Quote(word))
		if err != nil {
			t.Errorf("Parse of Quote(%q) = %q: %v", word, Quote(word), err)
			continue
		}
		got, err := Expander{}.Fields(script.Simples()[0].Words)
		if err != nil || len(got) != 2 || got[1] != word {
			t.Errorf("Quote(%q) = %q is read as %q, %v", word, Quote(word), got, err)
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
		script, err := Parse(source)
		if err != nil {
			if syntax, ok := errors.AsType[*SyntaxError](err); !ok || syntax.Offset < 0 || syntax.Offset > len(source) {
				t.Fatalf("Parse(%q) failed in a way of its own: %v", source, err)
			}
			return
		}
		for _, simple := range script.Simples() {
			for _, w := range simple.Words {
				if w.Start > w.End || w.End > len(source) {
					t.Fatalf("Parse(%q): word at %d..%d", source, w.Start, w.End)
				}
			}
			// Expansion may fail, it may not panic.
			fields, err := Expander{}.Fields(simple.Words)
			if err != nil {
				continue
			}
			// What was expanded survives quoting and a second reading.
			again, err := Parse("x " + Join(fields))
			if err != nil {
				t.Fatalf("Join(%q) cannot be parsed: %v", fields, err)
			}
			back, err := Expander{}.Fields(again.Simples()[0].Words)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]string{"x"}, fields...), back); diff != "" {
				t.Fatalf("quoting lost something (-want +got):\n%s", diff)
			}
		}
	})
}
