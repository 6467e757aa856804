package commandline

import (
	"fmt"
	"strings"
)

// SyntaxError is a shell string that cannot be read, and where.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("shell syntax at byte %d: %s", e.Offset, e.Reason)
}

type tokenKind int

const (
	tokenWord tokenKind = iota
	tokenOperator
	tokenNewline
	tokenEnd
)

// token is a word, an operator, a line end or the end of the text.
type token struct {
	kind   tokenKind
	text   string // operators only
	word   Word
	bare   string // the word's text if wholly unquoted and literal: reserved words are
	start  int
	number int // descriptor before a redirection, -1 when none
}

// operators, longest first so that the first match is the right one.
var operators = []string{"<<-", "&&", "||", ";;", "<<", ">>", ">&", "<&", ">|", "<>", "&>", ";", "&", "|", "<", ">", "(", ")"}

// lexer cuts a shell string into tokens on demand. Nested constructs
// ("$( ... )") are parsed by a parser that shares the lexer's position.
type lexer struct {
	source  string
	at      int
	pending []*Redirect // here-documents whose text begins after the next newline
	strip   []bool      // per pending: "<<-"
	raw     []bool      // per pending: quoted delimiter, no expansion
	depth   int
}

// maxDepth bounds the nesting of substitutions, so hostile input cannot exhaust the stack.
const maxDepth = 64

func (l *lexer) fail(at int, reason string) error {
	return &SyntaxError{Offset: at, Reason: reason}
}

func (l *lexer) skipBlanks() {
	for l.at < len(l.source) {
		switch c := l.source[l.at]; {
		case c == ' ' || c == '\t' || c == '\r':
			l.at++
		case c == '\\' && strings.HasPrefix(l.source[l.at:], "\\\n"):
			l.at += 2
		case c == '#':
			for l.at < len(l.source) && l.source[l.at] != '\n' {
				l.at++
			}
		default:
			return
		}
	}
}

func (l *lexer) next() (token, error) {
	l.skipBlanks()
	start := l.at
	if l.at >= len(l.source) {
		if len(l.pending) > 0 {
			return token{}, l.fail(l.at, "here-document without text")
		}
		return token{kind: tokenEnd, start: start}, nil
	}
	if l.source[l.at] == '\n' {
		l.at++
		return token{kind: tokenNewline, start: start}, l.readHereDocuments()
	}
	number := -1
	if c := l.source[l.at]; c >= '0' && c <= '9' && l.at+1 < len(l.source) && strings.IndexByte("<>", l.source[l.at+1]) >= 0 {
		number = int(c - '0')
		l.at++
	}
	for _, op := range operators {
		if strings.HasPrefix(l.source[l.at:], op) {
			l.at += len(op)
			return token{kind: tokenOperator, text: op, start: start, number: number}, nil
		}
	}
	word, err := l.readWord(false)
	if err != nil {
		return token{}, err
	}
	t := token{kind: tokenWord, word: word, start: start, number: -1}
	if len(word.Parts) == 1 && word.Parts[0].Kind == Literal && !word.Parts[0].Quoted {
		t.bare = word.Parts[0].Text
	}
	return t, nil
}

// readWord reads up to an unquoted blank or operator. Inside braces
// ("${NAME:-word}") only '}' ends the word.
func (l *lexer) readWord(inBraces bool) (Word, error) {
	b := wordBuilder{word: Word{Start: l.at}}
	for l.at < len(l.source) {
		c := l.source[l.at]
		if inBraces {
			if c == '}' {
				break
			}
		} else if strings.IndexByte(" \t\r\n;&|<>()", c) >= 0 {
			break
		}
		switch c {
		case '\\':
			if l.at+1 >= len(l.source) {
				b.literal("\\", false)
				l.at++
				continue
			}
			if l.source[l.at+1] != '\n' {
				b.literal(l.source[l.at+1:l.at+2], true)
			}
			l.at += 2
		case '\'':
			end := strings.IndexByte(l.source[l.at+1:], '\'')
			if end < 0 {
				return Word{}, l.fail(l.at, "unclosed single quote")
			}
			b.literal(l.source[l.at+1:l.at+1+end], true)
			l.at += end + 2
		case '"':
			l.at++
			if err := l.readDoubleQuoted(&b); err != nil {
				return Word{}, err
			}
		case '$', '`':
			if err := l.readExpansion(&b, false); err != nil {
				return Word{}, err
			}
		default:
			b.literal(l.source[l.at:l.at+1], false)
			l.at++
		}
	}
	b.word.End = l.at
	return b.word, nil
}

func (l *lexer) readDoubleQuoted(b *wordBuilder) error {
	open := l.at - 1
	b.literal("", true)
	for l.at < len(l.source) {
		switch c := l.source[l.at]; c {
		case '"':
			l.at++
			return nil
		case '\\':
			if l.at+1 < len(l.source) && strings.IndexByte("$`\"\\\n", l.source[l.at+1]) >= 0 {
				if l.source[l.at+1] != '\n' {
					b.literal(l.source[l.at+1:l.at+2], true)
				}
				l.at += 2
				continue
			}
			b.literal("\\", true)
			l.at++
		case '$', '`':
			if err := l.readExpansion(b, true); err != nil {
				return err
			}
		default:
			b.literal(l.source[l.at:l.at+1], true)
			l.at++
		}
	}
	return l.fail(open, "unclosed double quote")
}

// readExpansion reads what follows '$' or a backquote; a '$' that begins
// nothing is literal.
func (l *lexer) readExpansion(b *wordBuilder, quoted bool) error {
	l.depth++
	defer func() { l.depth-- }()
	start := l.at
	if l.depth > maxDepth {
		return l.fail(start, "nested too deeply")
	}
	if l.source[l.at] == '`' {
		end := strings.IndexByte(l.source[l.at+1:], '`')
		if end < 0 {
			return l.fail(start, "unclosed backquote")
		}
		script, err := parseNested(l.source[l.at+1:l.at+1+end], l.depth)
		if err != nil {
			return err
		}
		l.at += end + 2
		b.part(Part{Kind: CommandSubstitution, Quoted: quoted, Script: &script})
		return nil
	}
	rest := l.source[l.at+1:]
	switch {
	case strings.HasPrefix(rest, "(("):
		if expression, end, ok := arithmeticText(rest[2:]); ok {
			inner, err := l.nestedText(expression)
			if err != nil {
				return err
			}
			l.at += 3 + end
			b.part(Part{Kind: Arithmetic, Quoted: quoted, Expression: &inner})
			return nil
		}
		return l.readCommandSubstitution(b, quoted)
	case strings.HasPrefix(rest, "("):
		return l.readCommandSubstitution(b, quoted)
	case strings.HasPrefix(rest, "{"):
		return l.readBraced(b, quoted)
	}
	name := variableName(rest)
	if name == "" {
		b.literal("$", quoted)
		l.at++
		return nil
	}
	l.at += 1 + len(name)
	b.part(Part{Kind: Parameter, Quoted: quoted, Text: name})
	return nil
}

func (l *lexer) readCommandSubstitution(b *wordBuilder, quoted bool) error {
	start := l.at
	inner := &parser{lexer: &lexer{source: l.source, at: l.at + 2, depth: l.depth}}
	script, err := inner.script(func(t token) bool { return t.kind == tokenOperator && t.text == ")" })
	if err != nil {
		return err
	}
	if inner.current.kind != tokenOperator {
		return l.fail(start, "unclosed $(")
	}
	l.at = inner.lexer.at
	b.part(Part{Kind: CommandSubstitution, Quoted: quoted, Script: &script})
	return nil
}

// parameterOperators, longest first.
var parameterOperators = []string{":-", ":=", ":+", ":?", "%%", "##", "-", "=", "+", "?", "%", "#"}

func (l *lexer) readBraced(b *wordBuilder, quoted bool) error {
	start := l.at
	l.at += 2
	length := strings.HasPrefix(l.source[l.at:], "#") && !strings.HasPrefix(l.source[l.at:], "#}")
	if length {
		l.at++
	}
	name := variableName(l.source[l.at:])
	if name == "" {
		return l.fail(start, "bad parameter in ${")
	}
	l.at += len(name)
	part := Part{Kind: Parameter, Quoted: quoted, Text: name}
	if length {
		part.Operator = "length"
	} else {
		for _, op := range parameterOperators {
			if !strings.HasPrefix(l.source[l.at:], op) {
				continue
			}
			l.at += len(op)
			argument, err := l.readWord(true)
			if err != nil {
				return err
			}
			part.Operator, part.Argument = op, &argument
			break
		}
	}
	if !strings.HasPrefix(l.source[l.at:], "}") {
		return l.fail(start, "unclosed or unsupported ${")
	}
	l.at++
	b.part(part)
	return nil
}

// nestedText reads text as if between double quotes, quotes being ordinary.
func (l *lexer) nestedText(text string) (Word, error) {
	inner := &lexer{source: text, depth: l.depth}
	var b wordBuilder
	for inner.at < len(text) {
		switch text[inner.at] {
		case '$', '`':
			if err := inner.readExpansion(&b, true); err != nil {
				return Word{}, err
			}
		case '\\':
			if inner.at+1 < len(text) && strings.IndexByte("$`\\\n", text[inner.at+1]) >= 0 {
				if text[inner.at+1] != '\n' {
					b.literal(text[inner.at+1:inner.at+2], true)
				}
				inner.at += 2
				continue
			}
			b.literal("\\", true)
			inner.at++
		default:
			b.literal(text[inner.at:inner.at+1], true)
			inner.at++
		}
	}
	return b.word, nil
}

// readHereDocuments takes the texts announced on the line just ended.
func (l *lexer) readHereDocuments() error {
	for i, redirect := range l.pending {
		delimiter, _ := redirect.Target.Static()
		start := l.at
		var body strings.Builder
		closed := false
		for l.at < len(l.source) && !closed {
			line, _, found := strings.Cut(l.source[l.at:], "\n")
			l.at += len(line)
			if found {
				l.at++
			}
			if l.strip[i] {
				line = strings.TrimLeft(line, "\t")
			}
			if line == delimiter {
				closed = true
			} else {
				body.WriteString(line + "\n")
			}
		}
		if !closed {
			return l.fail(start, "here-document is not closed by "+delimiter)
		}
		if l.raw[i] {
			redirect.Target = Word{Parts: []Part{{Kind: Literal, Quoted: true, Text: body.String()}}}
			continue
		}
		word, err := l.nestedText(body.String())
		if err != nil {
			return err
		}
		redirect.Target = word
	}
	l.pending, l.strip, l.raw = nil, nil, nil
	return nil
}

// arithmeticText returns the text up to the matching "))" and the offset after it.
func arithmeticText(s string) (text string, end int, ok bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				if strings.HasPrefix(s[i:], "))") {
					return s[:i], i + 2, true
				}
				return "", 0, false
			}
			depth--
		}
	}
	return "", 0, false
}

// variableName returns the variable name or special parameter s begins with.
func variableName(s string) string {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z' || n > 0 && s[n] >= '0' && s[n] <= '9') {
		n++
	}
	if n == 0 && s != "" && strings.IndexByte("0123456789@*#?$!-", s[0]) >= 0 {
		return s[:1]
	}
	return s[:n]
}

// wordBuilder joins neighbouring literals of the same quoting.
type wordBuilder struct{ word Word }

func (b *wordBuilder) literal(text string, quoted bool) {
	if n := len(b.word.Parts); n > 0 {
		if last := &b.word.Parts[n-1]; last.Kind == Literal && last.Quoted == quoted {
			last.Text += text
			return
		}
	}
	b.part(Part{Kind: Literal, Quoted: quoted, Text: text})
}

func (b *wordBuilder) part(p Part) { b.word.Parts = append(b.word.Parts, p) }
