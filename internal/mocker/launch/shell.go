package launch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// Exit statuses a shell gives by itself.
const (
	statusSyntax     = 2
	statusNotFound   = 127
	statusTerminated = 143 // 128 + SIGTERM
)

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Runner plays a program of the runtime and returns its exit status.
type Runner func(ctx context.Context, p Program, s Streams) int

// Shell interprets a container's command.
type Shell struct {
	Run Runner
	Log *slog.Logger
	// Spread plays mpirun: it meets the other hosts of a job and runs the
	// wrapped command on this one. nil runs it without meeting anybody.
	Spread func(ctx context.Context, mpirun Program, s Streams, run func(ctx context.Context, env podenv.Env) int) int
	// Resolves plays getent; nil knows every host.
	Resolves func(ctx context.Context, host string, env podenv.Env) bool
	// Wait pauses for d or until ctx is done; nil waits for real.
	Wait func(ctx context.Context, d time.Duration) error
}

// Exec runs the words of a container's command and args and returns the exit
// status. No words at all, or only flags, mean the image's own entrypoint.
func (sh Shell) Exec(ctx context.Context, words []string, env podenv.Env, streams Streams) int {
	if sh.Wait == nil {
		sh.Wait = wait
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &process{shell: sh, env: env.Clone(), exported: map[string]bool{}, streams: streams, tail: true}
	for name := range env {
		p.exported[name] = true
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		program := entrypoint(words, env)
		if len(words) > 1 && words[0] == "-m" { // for the interpreter that is the runtime's entrypoint
			if known, ok := python(words); ok {
				program = known
			}
		}
		program.Env = p.exports()
		return sh.Run(ctx, program, streams)
	}
	return p.words(ctx, words)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// process is one shell process: variables, options, streams. Subshells and
// pipeline members are copies.
type process struct {
	shell    Shell
	env      podenv.Env
	exported map[string]bool
	params   []string // $0, $1, ...
	streams  Streams
	status   int
	// errexit and pipefail are set -e and set -o pipefail.
	errexit, pipefail bool
	// exited stops everything up to the end of this process.
	exited bool
	// leaving unwinds loops: break or continue.
	leaving string
	// tail is true while the command at hand decides the container's fate: an
	// unknown program there idles in a runtime image instead of failing.
	tail bool
	jobs *sync.WaitGroup
}

func (p *process) fork() *process {
	child := *p
	child.env = p.env.Clone()
	child.exported = map[string]bool{}
	for name := range p.exported {
		child.exported[name] = true
	}
	child.jobs = nil
	return &child
}

func (p *process) exports() podenv.Env {
	out := podenv.Env{}
	for name := range p.exported {
		if value, ok := p.env[name]; ok {
			out[name] = value
		}
	}
	return out
}

// stopped says whether to run nothing more.
func (p *process) stopped(ctx context.Context) bool {
	if ctx.Err() != nil && !p.exited {
		p.exited, p.status = true, statusTerminated
	}
	return p.exited || p.leaving != ""
}

// source parses and runs a shell string.
func (p *process) source(ctx context.Context, text string) int {
	script, err := commandline.Parse(text)
	if err != nil {
		fmt.Fprintf(p.streams.Err, "sh: %v\n", err)
		return statusSyntax
	}
	p.script(ctx, script)
	return p.status
}

func (p *process) script(ctx context.Context, s commandline.Script) {
	tail := p.tail
	for i, statement := range s.Statements {
		if p.stopped(ctx) {
			return
		}
		p.tail = tail && i == len(s.Statements)-1 && !statement.Background
		if statement.Background {
			p.background(ctx, statement)
			continue
		}
		p.statement(ctx, statement)
	}
	p.tail = tail
}

func (p *process) background(ctx context.Context, s commandline.Statement) {
	if p.jobs == nil {
		p.jobs = new(sync.WaitGroup)
	}
	child := p.fork()
	p.jobs.Go(func() { child.statement(ctx, s) })
	p.status = 0
}

func (p *process) statement(ctx context.Context, s commandline.Statement) {
	tail := p.tail
	p.tail = tail && len(s.Rest) == 0
	p.pipeline(ctx, s.First)
	decisive := len(s.Rest) == 0 && !s.First.Negated
	for i, link := range s.Rest {
		if p.stopped(ctx) {
			return
		}
		if link.Or == (p.status == 0) {
			decisive = false
			continue
		}
		decisive = i == len(s.Rest)-1 && !link.Pipeline.Negated
		p.tail = tail && i == len(s.Rest)-1
		p.pipeline(ctx, link.Pipeline)
	}
	p.tail = tail
	if p.errexit && decisive && p.status != 0 && !p.exited {
		p.exited = true
	}
}

func (p *process) pipeline(ctx context.Context, line commandline.Pipeline) {
	if len(line.Commands) == 1 {
		p.command(ctx, line.Commands[0])
	} else {
		p.status = p.pipe(ctx, line.Commands)
	}
	if line.Negated {
		if p.status == 0 {
			p.status = 1
		} else {
			p.status = 0
		}
	}
}

// pipe runs all commands at once, each in a copy of the process.
func (p *process) pipe(ctx context.Context, commands []commandline.Command) int {
	statuses := make([]int, len(commands))
	var all sync.WaitGroup
	in := p.streams.In
	for i, command := range commands {
		child := p.fork()
		child.streams.In = in
		var writer *io.PipeWriter
		reader, _ := in.(*io.PipeReader)
		if i < len(commands)-1 {
			var next *io.PipeReader
			next, writer = io.Pipe()
			child.streams.Out = writer
			in = next
		}
		all.Go(func() {
			child.command(ctx, command)
			statuses[i] = child.status
			// Closing both ends lets the neighbours see the end, as the kernel would.
			if writer != nil {
				_ = writer.Close()
			}
			if i > 0 && reader != nil {
				_ = reader.Close()
			}
		})
	}
	all.Wait()
	status := statuses[len(statuses)-1]
	if p.pipefail {
		for _, s := range statuses {
			if s != 0 {
				status = s
			}
		}
	}
	return status
}

func (p *process) command(ctx context.Context, command commandline.Command) {
	switch c := command.(type) {
	case *commandline.Simple:
		p.simple(ctx, c)
	case *commandline.If:
		p.redirected(c.Redirects, func() { p.ifCommand(ctx, c) })
	case *commandline.For:
		p.redirected(c.Redirects, func() { p.forCommand(ctx, c) })
	case *commandline.Loop:
		p.redirected(c.Redirects, func() { p.loopCommand(ctx, c) })
	case *commandline.Case:
		p.redirected(c.Redirects, func() { p.caseCommand(ctx, c) })
	case *commandline.Group:
		if !c.Subshell {
			p.redirected(c.Redirects, func() { p.script(ctx, c.Body) })
			return
		}
		child := p.fork()
		child.redirected(c.Redirects, func() { child.script(ctx, c.Body) })
		p.status = child.status
	}
}

// condition runs a script whose failure neither ends the shell nor idles.
func (p *process) condition(ctx context.Context, s commandline.Script) bool {
	tail, errexit := p.tail, p.errexit
	p.tail, p.errexit = false, false
	p.script(ctx, s)
	p.tail, p.errexit = tail, errexit
	return p.status == 0
}

func (p *process) ifCommand(ctx context.Context, c *commandline.If) {
	for _, branch := range c.Branches {
		if branch.Condition == nil || p.condition(ctx, *branch.Condition) {
			if !p.stopped(ctx) {
				p.script(ctx, branch.Body)
			}
			return
		}
		if p.stopped(ctx) {
			return
		}
	}
	p.status = 0
}

func (p *process) forCommand(ctx context.Context, c *commandline.For) {
	words, err := p.expander(ctx).Fields(c.Words)
	if err != nil {
		p.fail(err)
		return
	}
	p.status = 0
	for _, word := range words {
		p.env[c.Name] = word
		if !p.body(ctx, c.Body) {
			return
		}
	}
}

func (p *process) loopCommand(ctx context.Context, c *commandline.Loop) {
	for {
		if p.condition(ctx, c.Condition) == c.Until || p.stopped(ctx) {
			if !p.exited {
				p.status = 0
			}
			return
		}
		if !p.body(ctx, c.Body) {
			return
		}
	}
}

// body runs one round of a loop and says whether to go on.
func (p *process) body(ctx context.Context, s commandline.Script) bool {
	tail := p.tail
	p.tail = false
	p.script(ctx, s)
	p.tail = tail
	leaving := p.leaving
	p.leaving = ""
	return !p.stopped(ctx) && leaving != "break"
}

func (p *process) caseCommand(ctx context.Context, c *commandline.Case) {
	expander := p.expander(ctx)
	subject, err := expander.Text(c.Subject)
	if err != nil {
		p.fail(err)
		return
	}
	p.status = 0
	for _, arm := range c.Arms {
		for _, word := range arm.Patterns {
			pattern, err := expander.Text(word)
			if err != nil {
				p.fail(err)
				return
			}
			if commandline.Matches(pattern, subject) {
				p.script(ctx, arm.Body)
				return
			}
		}
	}
}

func (p *process) simple(ctx context.Context, c *commandline.Simple) {
	expander := p.expander(ctx)
	words, err := expander.Fields(c.Words)
	if err != nil {
		p.fail(err)
		return
	}
	target := p
	if len(words) > 0 && !changesShell(words[0]) {
		// Assignments before a command are the command's alone.
		target = p.fork()
	}
	for _, a := range c.Assignments {
		value, err := expander.Text(a.Value)
		if err != nil {
			p.fail(err)
			return
		}
		target.env[a.Name] = value
		if len(words) > 0 {
			target.exported[a.Name] = true
		}
	}
	if len(words) == 0 {
		p.status = 0
		p.redirected(c.Redirects, func() {})
		return
	}
	target.redirected(c.Redirects, func() { target.status = target.words(ctx, words) })
	p.status = target.status
	p.exited = p.exited || target.exited
}

func (p *process) fail(err error) {
	fmt.Fprintf(p.streams.Err, "sh: %v\n", err)
	p.status, p.exited = 1, true
}

func (p *process) expander(ctx context.Context) commandline.Expander {
	return commandline.Expander{
		Lookup: p.lookup,
		Assign: func(name, value string) { p.env[name] = value },
		Output: func(s commandline.Script) (string, error) {
			var out strings.Builder
			child := p.fork()
			child.tail = false
			child.streams.Out = &out
			child.script(ctx, s)
			p.status = child.status
			return out.String(), nil
		},
	}
}

func (p *process) lookup(name string) (string, bool) {
	switch name {
	case "?":
		return strconv.Itoa(p.status), true
	case "$":
		return "1", true
	case "#":
		return strconv.Itoa(max(0, len(p.params)-1)), true
	case "@", "*":
		if len(p.params) < 2 {
			return "", false
		}
		return strings.Join(p.params[1:], " "), true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n < len(p.params) {
			return p.params[n], true
		}
		return "", false
	}
	value, ok := p.env[name]
	return value, ok
}

// words runs one command given as words: builtin, shell, wrapper or program.
func (p *process) words(ctx context.Context, words []string) int {
	if builtin, ok := builtins[words[0]]; ok {
		return builtin(ctx, p, words[1:])
	}
	name := path.Base(words[0])
	if slices.Contains(shells, name) {
		return p.nested(ctx, words[1:])
	}
	switch name {
	case "exec":
		if len(words) == 1 {
			return 0
		}
		p.status = p.words(ctx, words[1:])
		p.exited = true
		return p.status
	case "env":
		return p.withEnv(ctx, words[1:])
	}
	if inner := unwrap(words); len(inner) > 0 {
		return p.wrapped(ctx, words[:len(words)-len(inner)], inner)
	}
	if program, ok := recognise(words); ok {
		program.Env = p.exports()
		return p.shell.Run(ctx, program, p.streams)
	}
	if builtin, ok := builtins[name]; ok {
		return builtin(ctx, p, words[1:])
	}
	if pythonName.MatchString(name) {
		return p.python(ctx, words)
	}
	return p.unknown(ctx, words)
}

// wrapped runs the command inside a wrapper, and what the wrapper does around it.
func (p *process) wrapped(ctx context.Context, wrapper, inner []string) int {
	name := path.Base(wrapper[0])
	if name != "mpirun" && name != "mpiexec" || p.shell.Spread == nil {
		return p.words(ctx, inner)
	}
	program := Program{Kind: MPIJob, Name: name, Args: wrapper[1:], Env: p.exports()}
	return p.shell.Spread(ctx, program, p.streams, func(ctx context.Context, env podenv.Env) int {
		child := p.fork()
		for name, value := range env {
			child.env[name], child.exported[name] = value, true
		}
		return child.words(ctx, inner)
	})
}

// python is an interpreter that was not given a program of the runtime: code on
// the command line and package installation prepare something and succeed.
func (p *process) python(ctx context.Context, words []string) int {
	for i, word := range words[1:] {
		switch {
		case word == "-c" || word == "-V" || word == "--version":
			return 0
		case word == "-m" && i+2 < len(words):
			name := words[i+2]
			if name == "pip" || name == "venv" || name == "ensurepip" {
				return 0
			}
			if strings.HasPrefix(name, "benchmarks.") {
				// A Job that idles never ends; one that fails says why.
				fmt.Fprintf(p.streams.Err, "%s: the mock engine does not play benchmarks or profilers\n", name)
				return 1
			}
		}
	}
	return p.unknown(ctx, words)
}

// nested runs sh [options] -c STRING [NAME ARGS...].
func (p *process) nested(ctx context.Context, args []string) int {
	child := p.fork()
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			break
		}
		if strings.HasPrefix(arg, "--") || !strings.HasSuffix(arg, "c") {
			child.options(arg)
			continue
		}
		child.options(strings.TrimSuffix(arg, "c"))
		if i+1 >= len(args) {
			fmt.Fprintf(p.streams.Err, "sh: %s: option requires an argument\n", arg)
			return statusSyntax
		}
		child.params = append([]string{"sh"}, args[min(i+3, len(args)):]...)
		return child.source(ctx, args[i+1])
	}
	return p.unknown(ctx, append([]string{"sh"}, args...))
}

func (p *process) withEnv(ctx context.Context, words []string) int {
	child := p.fork()
	for i, word := range words {
		if name, value, ok := strings.Cut(word, "="); ok {
			child.env[name], child.exported[name] = value, true
		} else if !strings.HasPrefix(word, "-") {
			return child.words(ctx, words[i:])
		}
	}
	return 0
}

// unknown is a program that nobody here can play. A shell says 127, and so do
// we; but where it is all the container would do, and the image is one of the
// runtime, the lack is ours and not the manifest's: crash-looping would blame
// the user for it, so the container stays up and says why it does nothing.
func (p *process) unknown(ctx context.Context, words []string) int {
	if p.tail && runtimeImage(p.env["DYNAMO_CONTAINER_IMAGE"]) {
		p.shell.Log.Warn("the mock engine cannot play this program; idling in its place", "command", commandline.Join(words))
		return p.shell.Run(ctx, Program{Kind: Idle, Name: words[0], Args: words[1:], Env: p.exports()}, p.streams)
	}
	fmt.Fprintf(p.streams.Err, "sh: %s: not found\n", words[0])
	return statusNotFound
}
