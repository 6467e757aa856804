package commandline

// Script is a sequence of statements.
type Script struct {
	Statements []Statement
}

// Statement is pipelines joined by && and ||. Background means it ends in '&'.
type Statement struct {
	First      Pipeline
	Rest       []Linked
	Background bool
}

// Linked is a pipeline that runs depending on the status of the one before it.
type Linked struct {
	// Or is true for "||", false for "&&".
	Or       bool
	Pipeline Pipeline
}

// Pipeline is commands whose output feeds the next. Negated means a leading '!'.
type Pipeline struct {
	Negated  bool
	Commands []Command
}

// Command is one of *Simple, *If, *For, *Loop, *Case or *Group.
type Command interface{ isCommand() }

// Simple is a program call: assignments, words, redirections.
type Simple struct {
	Assignments []Assignment
	Words       []Word
	Redirects   []*Redirect
}

// If is if/elif/else/fi. A final branch without condition is the else.
type If struct {
	Branches  []Branch
	Redirects []*Redirect
}

// Branch is one arm of an If; Condition is nil in the else arm.
type Branch struct {
	Condition *Script
	Body      Script
}

// For is for NAME in WORDS; do BODY; done.
type For struct {
	Name      string
	Words     []Word
	Body      Script
	Redirects []*Redirect
}

// Loop is while or until.
type Loop struct {
	Until     bool
	Condition Script
	Body      Script
	Redirects []*Redirect
}

// Case is case WORD in PATTERN) BODY;; ... esac.
type Case struct {
	Subject   Word
	Arms      []Arm
	Redirects []*Redirect
}

// Arm is one pattern list of a Case with its body.
type Arm struct {
	Patterns []Word
	Body     Script
}

// Group is { BODY; } or, with its own variables, ( BODY ).
type Group struct {
	Subshell  bool
	Body      Script
	Redirects []*Redirect
}

func (*Simple) isCommand() {}
func (*If) isCommand()     {}
func (*For) isCommand()    {}
func (*Loop) isCommand()   {}
func (*Case) isCommand()   {}
func (*Group) isCommand()  {}

// Assignment is NAME=VALUE before a command.
type Assignment struct {
	Name  string
	Value Word
}

// Redirect is [N]OP TARGET. For here-documents Target holds the text, which is
// known only when the line ends: hence redirections are shared by pointer.
type Redirect struct {
	Descriptor int
	Operator   string
	Target     Word
}

// Word is one shell word in parts. Start and End are byte offsets in the source,
// so that a caller may edit the string around a word it recognised. Words of a
// here-document have none.
type Word struct {
	Parts      []Part
	Start, End int
}

// PartKind says how a part of a word expands.
type PartKind int

// The kinds of word parts.
const (
	Literal PartKind = iota
	Parameter
	CommandSubstitution
	Arithmetic
)

// Part is a piece of a word. Quoted parts are never split into fields.
type Part struct {
	Kind   PartKind
	Quoted bool
	// Text is the literal text, or the parameter's name.
	Text string
	// Operator and Argument belong to ${NAME<Operator><Argument>}.
	Operator string
	Argument *Word
	// Script is the substituted command.
	Script *Script
	// Expression is the arithmetic text, itself subject to expansion.
	Expression *Word
}

// Static returns the word's text when nothing in it needs expanding.
func (w Word) Static() (string, bool) {
	var text []byte
	for _, part := range w.Parts {
		if part.Kind != Literal {
			return "", false
		}
		text = append(text, part.Text...)
	}
	return string(text), true
}

// Simples returns every simple command of the script in source order, whatever
// it is nested in, command substitutions excepted.
func (s Script) Simples() []*Simple {
	var out []*Simple
	for _, statement := range s.Statements {
		out = append(out, statement.First.simples()...)
		for _, link := range statement.Rest {
			out = append(out, link.Pipeline.simples()...)
		}
	}
	return out
}

func (p Pipeline) simples() []*Simple {
	var out []*Simple
	for _, command := range p.Commands {
		switch c := command.(type) {
		case *Simple:
			out = append(out, c)
		case *If:
			for _, branch := range c.Branches {
				if branch.Condition != nil {
					out = append(out, branch.Condition.Simples()...)
				}
				out = append(out, branch.Body.Simples()...)
			}
		case *For:
			out = append(out, c.Body.Simples()...)
		case *Loop:
			out = append(out, c.Condition.Simples()...)
			out = append(out, c.Body.Simples()...)
		case *Case:
			for _, arm := range c.Arms {
				out = append(out, arm.Body.Simples()...)
			}
		case *Group:
			out = append(out, c.Body.Simples()...)
		}
	}
	return out
}
