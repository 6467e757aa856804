package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

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
	// Dial plays the connections that code on a command line makes; nil makes
	// none and takes every one for made.
	Dial func(ctx context.Context, address string, env podenv.Env) (net.Conn, error)
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
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		program := entrypoint(words, env)
		if len(words) > 1 && words[0] == "-m" { // for the interpreter that is the runtime's entrypoint
			if known, ok := python(words); ok {
				program = known
			}
		}
		program.Env = env.Clone()
		return sh.Run(ctx, program, streams)
	}
	call := &syntax.CallExpr{}
	for _, word := range words { // none of them is for a shell to expand
		call.Args = append(call.Args, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: word}}})
	}
	container := command{shell: sh, env: env, streams: streams, decisive: true}
	return container.script(ctx, &syntax.File{Name: "sh", Stmts: []*syntax.Stmt{{Cmd: call}}})
}

func wait(ctx context.Context, d time.Duration) error {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-over.Done()
	return ctx.Err()
}

// command is one command at work and what its shell gave it.
type command struct {
	shell   Shell
	env     podenv.Env // the exported variables
	streams Streams
	// decisive is true for the command that decides the container's fate: an
	// unknown program there idles in a runtime image instead of failing.
	decisive bool
	// builtin runs a command of the interpreter's own.
	builtin func(ctx context.Context, words []string) error
}

// script runs a script in a shell of its own, with the options and parameters
// that set takes.
func (c command) script(ctx context.Context, file *syntax.File, params ...string) int {
	last := map[syntax.Pos]bool{}
	if c.decisive {
		markLast(file.Stmts, last)
	}
	var pairs []string
	for name, value := range c.env {
		pairs = append(pairs, name+"="+value)
	}
	runner, err := interp.New(
		interp.Env(expand.ListEnviron(pairs...)),
		interp.StdIO(c.streams.In, c.streams.Out, c.streams.Err),
		interp.Params(append([]string{"-f"}, params...)...), // a pattern names files of an image that does not exist here
		interp.CallHandler(playable),
		interp.OpenHandler(open),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(ctx context.Context, words []string) error {
				in := interp.HandlerCtx(ctx)
				child := command{
					shell: c.shell, env: exported(in.Env), streams: Streams{In: in.Stdin, Out: in.Stdout, Err: in.Stderr},
					decisive: last[in.Pos], builtin: in.Builtin,
				}
				return child.run(ctx, words)
			}
		}),
	)
	if err == nil {
		err = runner.Run(ctx, file)
	}
	return c.status(ctx, err)
}

// status is the exit status that an error of the interpreter means.
func (c command) status(ctx context.Context, err error) int {
	status, exited := errors.AsType[interp.ExitStatus](err)
	switch {
	case err == nil:
		return 0
	case exited:
		return int(status)
	case ctx.Err() != nil:
		return statusTerminated
	}
	fmt.Fprintf(c.streams.Err, "sh: %v\n", err)
	return 1
}

func exported(variables expand.Environ) podenv.Env {
	env := podenv.Env{}
	for name, v := range variables.Each { // the last of a name counts
		delete(env, name)
		if v.IsSet() && v.Exported {
			env[name] = v.String()
		}
	}
	return env
}

// open opens the target of a redirection. Nothing is ever written to a file: a
// path in a manifest names a place in an image that does not exist here, and
// must not name one on the host.
func open(ctx context.Context, name string, flag int, _ os.FileMode) (io.ReadWriteCloser, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return os.Open(name)
	}
	switch name {
	case "/dev/stdout", "/proc/1/fd/1", "/proc/self/fd/1":
		return sink{interp.HandlerCtx(ctx).Stdout}, nil
	case "/dev/stderr", "/proc/1/fd/2", "/proc/self/fd/2":
		return sink{interp.HandlerCtx(ctx).Stderr}, nil
	}
	return sink{io.Discard}, nil
}

type sink struct{ io.Writer }

func (sink) Read([]byte) (int, error) { return 0, io.EOF }
func (sink) Close() error             { return nil }

// exit is the error by which the interpreter is told an exit status.
func exit(status int) error {
	if status == 0 {
		return nil
	}
	return interp.ExitStatus(status) // modulo 256, as a shell does
}

// run runs one command: a builtin, a shell, a wrapper or a program.
func (c command) run(ctx context.Context, words []string) error {
	if builtin, ok := builtins[words[0]]; ok {
		return exit(builtin(ctx, c, words[1:]))
	}
	name := path.Base(words[0])
	if slices.Contains(shells, name) {
		return exit(c.nested(ctx, words[1:]))
	}
	if name == "env" {
		return c.withEnv(ctx, words[1:])
	}
	if inner := unwrap(words); len(inner) > 0 {
		return c.wrapped(ctx, words[:len(words)-len(inner)], inner)
	}
	if program, ok := recognise(words); ok {
		program.Env = c.env
		return exit(c.shell.Run(ctx, program, c.streams))
	}
	if builtin, ok := builtins[name]; ok {
		return exit(builtin(ctx, c, words[1:]))
	}
	if interp.IsBuiltin(name) { // by its path, or in a wrapper
		words, err := playable(ctx, append([]string{name}, words[1:]...))
		if err != nil {
			return err
		}
		return c.builtin(ctx, words)
	}
	if pythonName.MatchString(name) {
		return exit(c.python(ctx, words))
	}
	return exit(c.unknown(ctx, words))
}

// wrapped runs the command inside a wrapper, and what the wrapper does around it.
func (c command) wrapped(ctx context.Context, wrapper, inner []string) error {
	name := path.Base(wrapper[0])
	if name != "mpirun" && name != "mpiexec" || c.shell.Spread == nil {
		return c.run(ctx, inner)
	}
	program := Program{Kind: MPIJob, Name: name, Args: wrapper[1:], Env: c.env}
	return exit(c.shell.Spread(ctx, program, c.streams, func(ctx context.Context, env podenv.Env) int {
		child := c
		child.env = c.env.Clone()
		maps.Copy(child.env, env)
		return child.status(ctx, child.run(ctx, inner))
	}))
}

// python is an interpreter that was not given a program of the runtime: code on
// the command line asks something or prepares it, package installation succeeds.
func (c command) python(ctx context.Context, words []string) int {
	for i, word := range words[1:] {
		switch {
		case word == "-c" && i+2 < len(words):
			return c.code(ctx, words[i+2])
		case word == "-c" || word == "-V" || word == "--version":
			return 0
		case word == "-m" && i+2 < len(words):
			name := words[i+2]
			if name == "pip" || name == "venv" || name == "ensurepip" {
				return 0
			}
			if strings.HasPrefix(name, "benchmarks.") {
				// A Job that idles never ends; one that fails says why.
				fmt.Fprintf(c.streams.Err, "%s: the mock engine does not play benchmarks or profilers\n", name)
				return 1
			}
		}
	}
	return c.unknown(ctx, words)
}

// nested runs sh [options] -c STRING [NAME ARGS...].
func (c command) nested(ctx context.Context, args []string) int {
	known, reads, rest := options(args)
	if !reads {
		return c.unknown(ctx, append([]string{"sh"}, args...))
	}
	if len(rest) == 0 {
		fmt.Fprintln(c.streams.Err, "sh: -c: option requires an argument")
		return statusSyntax
	}
	file, err := parse(rest[0])
	if err != nil {
		fmt.Fprintf(c.streams.Err, "sh: %v\n", err)
		return statusSyntax
	}
	return c.script(ctx, file, slices.Concat(known, []string{"--"}, rest[min(2, len(rest)):])...)
}

func (c command) withEnv(ctx context.Context, words []string) error {
	c.env = c.env.Clone()
	for i, word := range words {
		if name, value, ok := strings.Cut(word, "="); ok {
			c.env[name] = value
		} else if !strings.HasPrefix(word, "-") {
			return c.run(ctx, words[i:])
		}
	}
	return nil
}

// unknown is a program that nobody here can play. A shell says 127, and so do
// we; but where it is all the container would do, and the image is one of the
// runtime, the lack is ours and not the manifest's: crash-looping would blame
// the user for it, so the container stays up and says why it does nothing.
func (c command) unknown(ctx context.Context, words []string) int {
	if c.decisive && runtimeImage(c.env["DYNAMO_CONTAINER_IMAGE"]) {
		c.shell.Log.Warn("the mock engine cannot play this program; idling in its place", "command", commandline.Join(words))
		return c.shell.Run(ctx, Program{Kind: Idle, Name: words[0], Args: words[1:], Env: c.env}, c.streams)
	}
	fmt.Fprintf(c.streams.Err, "sh: %s: not found\n", words[0])
	return statusNotFound
}
