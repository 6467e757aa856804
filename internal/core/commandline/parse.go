package commandline

import "strings"

// Parse reads a shell string.
func Parse(source string) (Script, error) { return parseNested(source, 0) }

func parseNested(source string, depth int) (Script, error) {
	p := &parser{lexer: &lexer{source: source, depth: depth}}
	script, err := p.script(func(token) bool { return false })
	if err != nil {
		return Script{}, err
	}
	return script, nil
}

// parser is a recursive descent over the lexer's tokens; current is the one
// token of lookahead.
type parser struct {
	lexer   *lexer
	current token
	level   int
}

func (p *parser) advance() (err error) {
	p.current, err = p.lexer.next()
	return err
}

func (p *parser) fail(reason string) error { return p.lexer.fail(p.current.start, reason) }

// script reads from the lexer's position up to and including a token that
// satisfies until, or the end of the text.
func (p *parser) script(until func(token) bool) (Script, error) {
	if err := p.advance(); err != nil {
		return Script{}, err
	}
	s, err := p.list(until)
	if err != nil {
		return Script{}, err
	}
	if p.current.kind != tokenEnd && !until(p.current) {
		return Script{}, p.fail("unexpected " + p.current.describe())
	}
	return s, nil
}

// list reads statements until a token that until accepts, or one that cannot begin a statement.
func (p *parser) list(until func(token) bool) (Script, error) {
	p.level++
	if p.level > maxDepth {
		return Script{}, p.fail("nested too deeply")
	}
	defer func() { p.level-- }()
	var s Script
	for {
		for p.current.kind == tokenNewline || p.isOperator(";") && len(s.Statements) > 0 {
			if err := p.advance(); err != nil {
				return s, err
			}
		}
		if p.current.kind == tokenEnd || until(p.current) {
			return s, nil
		}
		statement, err := p.statement()
		if err != nil {
			return s, err
		}
		ended := p.current.kind == tokenNewline || p.isOperator(";")
		if p.isOperator("&") {
			statement.Background, ended = true, true
		}
		s.Statements = append(s.Statements, statement)
		if !ended {
			return s, nil
		}
		if err := p.advance(); err != nil {
			return s, err
		}
	}
}

func (p *parser) statement() (Statement, error) {
	var s Statement
	var err error
	if s.First, err = p.pipeline(); err != nil {
		return s, err
	}
	for p.isOperator("&&") || p.isOperator("||") {
		link := Linked{Or: p.current.text == "||"}
		if err := p.advanceOverNewlines(); err != nil {
			return s, err
		}
		if link.Pipeline, err = p.pipeline(); err != nil {
			return s, err
		}
		s.Rest = append(s.Rest, link)
	}
	return s, nil
}

func (p *parser) pipeline() (Pipeline, error) {
	var line Pipeline
	for p.current.bare == "!" {
		line.Negated = !line.Negated
		if err := p.advance(); err != nil {
			return line, err
		}
	}
	for {
		command, err := p.command()
		if err != nil {
			return line, err
		}
		line.Commands = append(line.Commands, command)
		if !p.isOperator("|") {
			return line, nil
		}
		if err := p.advanceOverNewlines(); err != nil {
			return line, err
		}
	}
}

func (p *parser) command() (Command, error) {
	if p.isOperator("(") {
		body, err := p.enclosed(")")
		if err != nil {
			return nil, err
		}
		g := &Group{Subshell: true, Body: body}
		g.Redirects, err = p.redirects()
		return g, err
	}
	switch p.current.bare {
	case "{":
		body, err := p.enclosed("}")
		if err != nil {
			return nil, err
		}
		g := &Group{Body: body}
		g.Redirects, err = p.redirects()
		return g, err
	case "if":
		return p.ifCommand()
	case "for":
		return p.forCommand()
	case "while", "until":
		return p.loopCommand()
	case "case":
		return p.caseCommand()
	case "then", "elif", "else", "fi", "do", "done", "esac", "}":
		return nil, p.fail("unexpected " + p.current.describe())
	case "function", "select":
		return nil, p.fail(p.current.bare + " is not supported")
	}
	return p.simple()
}

// enclosed reads "open list closer", the opener being current.
func (p *parser) enclosed(closer string) (Script, error) {
	if err := p.advance(); err != nil {
		return Script{}, err
	}
	return p.listUpTo(closer)
}

// listUpTo reads a list and the closing reserved word or parenthesis.
func (p *parser) listUpTo(closers ...string) (Script, error) {
	closes := func(t token) bool {
		for _, c := range closers {
			if t.bare == c || t.kind == tokenOperator && t.text == c {
				return true
			}
		}
		return false
	}
	s, err := p.list(closes)
	if err != nil {
		return s, err
	}
	if !closes(p.current) {
		return s, p.fail("expected " + strings.Join(closers, " or ") + ", found " + p.current.describe())
	}
	if len(closers) > 1 {
		return s, nil // the caller looks which one it is
	}
	return s, p.advance()
}

func (p *parser) ifCommand() (Command, error) {
	var c If
	for {
		if err := p.advance(); err != nil { // if, elif
			return nil, err
		}
		condition, err := p.listUpTo("then")
		if err != nil {
			return nil, err
		}
		body, err := p.listUpTo("elif", "else", "fi")
		if err != nil {
			return nil, err
		}
		c.Branches = append(c.Branches, Branch{Condition: &condition, Body: body})
		switch p.current.bare {
		case "elif":
			continue
		case "else":
			if err := p.advance(); err != nil {
				return nil, err
			}
			otherwise, err := p.listUpTo("fi")
			if err != nil {
				return nil, err
			}
			c.Branches = append(c.Branches, Branch{Body: otherwise})
		default:
			if err := p.advance(); err != nil {
				return nil, err
			}
		}
		c.Redirects, err = p.redirects()
		return &c, err
	}
}

func (p *parser) forCommand() (Command, error) {
	var c For
	if err := p.advance(); err != nil {
		return nil, err
	}
	if c.Name = p.current.bare; c.Name == "" || variableName(c.Name) != c.Name {
		return nil, p.fail("for needs a variable name")
	}
	if err := p.advanceOverNewlines(); err != nil {
		return nil, err
	}
	if p.current.bare != "in" {
		return nil, p.fail("for without in is not supported")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for p.current.kind == tokenWord {
		c.Words = append(c.Words, p.current.word)
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	var err error
	if c.Body, err = p.doDone(); err != nil {
		return nil, err
	}
	c.Redirects, err = p.redirects()
	return &c, err
}

func (p *parser) loopCommand() (Command, error) {
	c := Loop{Until: p.current.bare == "until"}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	if c.Condition, err = p.listUpTo("do"); err != nil {
		return nil, err
	}
	if c.Body, err = p.listUpTo("done"); err != nil {
		return nil, err
	}
	c.Redirects, err = p.redirects()
	return &c, err
}

func (p *parser) doDone() (Script, error) {
	for p.isOperator(";") || p.current.kind == tokenNewline {
		if err := p.advance(); err != nil {
			return Script{}, err
		}
	}
	if p.current.bare != "do" {
		return Script{}, p.fail("expected do, found " + p.current.describe())
	}
	if err := p.advance(); err != nil {
		return Script{}, err
	}
	return p.listUpTo("done")
}

func (p *parser) caseCommand() (Command, error) {
	var c Case
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.current.kind != tokenWord {
		return nil, p.fail("case needs a word")
	}
	c.Subject = p.current.word
	if err := p.advanceOverNewlines(); err != nil {
		return nil, err
	}
	if p.current.bare != "in" {
		return nil, p.fail("expected in, found " + p.current.describe())
	}
	if err := p.advanceOverNewlines(); err != nil {
		return nil, err
	}
	for p.current.bare != "esac" {
		arm, err := p.caseArm()
		if err != nil {
			return nil, err
		}
		c.Arms = append(c.Arms, arm)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	c.Redirects, err = p.redirects()
	return &c, err
}

func (p *parser) caseArm() (Arm, error) {
	var arm Arm
	if p.isOperator("(") {
		if err := p.advance(); err != nil {
			return arm, err
		}
	}
	for {
		if p.current.kind != tokenWord {
			return arm, p.fail("expected a pattern, found " + p.current.describe())
		}
		arm.Patterns = append(arm.Patterns, p.current.word)
		if err := p.advance(); err != nil {
			return arm, err
		}
		if p.isOperator(")") {
			break
		}
		if !p.isOperator("|") {
			return arm, p.fail("expected ), found " + p.current.describe())
		}
		if err := p.advance(); err != nil {
			return arm, err
		}
	}
	if err := p.advance(); err != nil {
		return arm, err
	}
	body, err := p.listUpTo(";;", "esac")
	if err != nil {
		return arm, err
	}
	arm.Body = body
	if p.isOperator(";;") {
		return arm, p.advanceOverNewlines()
	}
	return arm, nil
}

func (p *parser) simple() (Command, error) {
	var c Simple
	for {
		switch {
		case p.isRedirect():
			redirect, err := p.redirect()
			if err != nil {
				return nil, err
			}
			c.Redirects = append(c.Redirects, redirect...)
			continue
		case p.current.kind == tokenWord:
			if name, value, ok := assignment(p.current.word); ok && len(c.Words) == 0 {
				c.Assignments = append(c.Assignments, Assignment{Name: name, Value: value})
			} else {
				c.Words = append(c.Words, p.current.word)
			}
			if err := p.advance(); err != nil {
				return nil, err
			}
			continue
		case p.isOperator("(") && len(c.Words) == 1:
			return nil, p.fail("function definitions are not supported")
		}
		if len(c.Words)+len(c.Assignments)+len(c.Redirects) == 0 {
			return nil, p.fail("expected a command, found " + p.current.describe())
		}
		return &c, nil
	}
}

func (p *parser) redirects() ([]*Redirect, error) {
	var out []*Redirect
	for p.isRedirect() {
		redirect, err := p.redirect()
		if err != nil {
			return nil, err
		}
		out = append(out, redirect...)
	}
	return out, nil
}

func (p *parser) isRedirect() bool {
	return p.current.kind == tokenOperator && strings.ContainsAny(p.current.text, "<>")
}

// redirect reads one redirection; "&> file" is two.
func (p *parser) redirect() ([]*Redirect, error) {
	r := &Redirect{Descriptor: p.current.number, Operator: p.current.text}
	if r.Descriptor < 0 {
		r.Descriptor = 1
		if r.Operator[0] == '<' {
			r.Descriptor = 0
		}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.current.kind != tokenWord {
		return nil, p.fail("redirection without a target")
	}
	r.Target = p.current.word
	if strings.HasPrefix(r.Operator, "<<") {
		if _, ok := r.Target.Static(); !ok {
			return nil, p.fail("the end word of a here-document must be literal")
		}
		quoted := false
		for _, part := range r.Target.Parts {
			quoted = quoted || part.Quoted
		}
		p.lexer.pending = append(p.lexer.pending, r)
		p.lexer.strip = append(p.lexer.strip, r.Operator == "<<-")
		p.lexer.raw = append(p.lexer.raw, quoted)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if r.Operator == "&>" {
		dup := Word{Parts: []Part{{Kind: Literal, Text: "1"}}}
		return []*Redirect{{Descriptor: 1, Operator: ">", Target: r.Target}, {Descriptor: 2, Operator: ">&", Target: dup}}, nil
	}
	return []*Redirect{r}, nil
}

// assignment takes a word apart at '=' if it begins with an unquoted NAME=.
func assignment(w Word) (string, Word, bool) {
	if len(w.Parts) == 0 || w.Parts[0].Kind != Literal || w.Parts[0].Quoted {
		return "", Word{}, false
	}
	name, value, ok := strings.Cut(w.Parts[0].Text, "=")
	if !ok || name == "" || variableName(name) != name || strings.IndexByte("0123456789@*#?$!-", name[0]) >= 0 {
		return "", Word{}, false
	}
	rest := Word{Start: w.Start + len(name) + 1, End: w.End}
	if value != "" {
		rest.Parts = append(rest.Parts, Part{Kind: Literal, Text: value})
	}
	rest.Parts = append(rest.Parts, w.Parts[1:]...)
	return name, rest, true
}

func (p *parser) isOperator(text string) bool {
	return p.current.kind == tokenOperator && p.current.text == text
}

func (p *parser) advanceOverNewlines() error {
	for {
		if err := p.advance(); err != nil || p.current.kind != tokenNewline {
			return err
		}
	}
}

func (t token) describe() string {
	switch t.kind {
	case tokenOperator:
		return t.text
	case tokenNewline:
		return "end of line"
	case tokenEnd:
		return "end of text"
	}
	if t.bare != "" {
		return t.bare
	}
	return "a word"
}
