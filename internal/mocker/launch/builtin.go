package launch

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// builtin is a command the mock plays itself.
type builtin func(ctx context.Context, p *process, args []string) int

var builtins map[string]builtin

// harmless commands prepare a container; here there is nothing to prepare.
var harmless = []string{
	":", "true", "cd", "mkdir", "cp", "mv", "rm", "ln", "touch", "chmod", "chown", "ls", "ssh-keygen", "ulimit", "umask", "trap",
	"source", ".", "ldconfig", "nvidia-smi", "pip", "pip3", "apt-get", "apt", "git", "hf", "huggingface-cli", "modelexpress-cli",
	"sysctl", "hash", "stty", "unalias", "alias", "shopt", "sync", "aiperf",
}

func init() { // not a literal: eval and friends refer back to the table
	builtins = map[string]builtin{
		"false":    func(context.Context, *process, []string) int { return 1 },
		"echo":     echo,
		"printf":   printf,
		"exit":     exit,
		"export":   export,
		"unset":    unset,
		"set":      set,
		"sleep":    sleep,
		"wait":     waitForJobs,
		"tail":     tail,
		"break":    leave("break"),
		"continue": leave("continue"),
		"eval":     eval,
		"date":     date,
		"hostname": hostname,
		"getent":   getent,
		"ray":      ray,
		"cat":      cat,
		"tee":      tee,
		"sed":      sed,
		"test":     test,
		"[":        bracket("]"),
		"[[":       bracket("]]"),
		"curl":     curl,
		"jq":       jq,
		"nproc":    func(_ context.Context, p *process, _ []string) int { fmt.Fprintln(p.streams.Out, 1); return 0 },
		"which":    func(context.Context, *process, []string) int { return 0 },
	}
	for _, name := range harmless {
		builtins[name] = func(context.Context, *process, []string) int { return 0 }
	}
}

// changesShell names the builtins that act on the shell itself, so that they
// must not run in a copy of it.
func changesShell(name string) bool {
	switch name {
	case "exit", "export", "unset", "set", "wait", "break", "continue", "eval", "exec":
		return true
	}
	return false
}

func echo(_ context.Context, p *process, args []string) int {
	end := "\n"
	if len(args) > 0 && args[0] == "-n" {
		end, args = "", args[1:]
	} else if len(args) > 0 && args[0] == "-e" {
		args = args[1:]
	}
	fmt.Fprint(p.streams.Out, strings.Join(args, " ")+end)
	return 0
}

func printf(_ context.Context, p *process, args []string) int {
	if len(args) == 0 {
		return statusSyntax
	}
	text := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, "%%", "%").Replace(args[0])
	for _, arg := range args[1:] {
		for _, verb := range []string{"%s", "%d"} {
			if strings.Contains(text, verb) {
				text = strings.Replace(text, verb, arg, 1)
				break
			}
		}
	}
	fmt.Fprint(p.streams.Out, text)
	return 0
}

func exit(_ context.Context, p *process, args []string) int {
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			fmt.Fprintf(p.streams.Err, "sh: exit: illegal number: %s\n", args[0])
			n = statusSyntax
		}
		p.status = n & 0xff
	}
	p.exited = true
	return p.status
}

func export(_ context.Context, p *process, args []string) int {
	for _, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		p.exported[name] = true
		if assigned {
			p.env[name] = value
		}
	}
	return 0
}

func unset(_ context.Context, p *process, args []string) int {
	for _, name := range args {
		delete(p.env, name)
		delete(p.exported, name)
	}
	return 0
}

func set(_ context.Context, p *process, args []string) int {
	for i, arg := range args {
		if arg == "--" {
			p.params = append([]string{"sh"}, args[i+1:]...)
			return 0
		}
		p.options(arg)
	}
	return 0
}

// options takes "-e", "-euxo", "+e" or the bare name after -o.
func (p *process) options(arg string) {
	if arg == "pipefail" {
		p.pipefail = true
		return
	}
	if strings.HasPrefix(arg, "-") && strings.Contains(arg, "e") && !strings.HasPrefix(arg, "--") {
		p.errexit = true
	}
	if strings.HasPrefix(arg, "+") && strings.Contains(arg, "e") {
		p.errexit = false
	}
}

// forever is as good as infinity for a pod.
const forever = time.Duration(math.MaxInt64)

func sleep(ctx context.Context, p *process, args []string) int {
	var total time.Duration
	for _, arg := range args {
		d, ok := sleepTime(arg)
		if !ok {
			fmt.Fprintf(p.streams.Err, "sleep: invalid time interval %q\n", arg)
			return 1
		}
		if d == forever {
			total = forever
			break
		}
		total += d
	}
	if p.shell.Wait(ctx, total) != nil {
		return statusTerminated
	}
	return 0
}

func sleepTime(arg string) (time.Duration, bool) {
	if arg == "infinity" || arg == "inf" {
		return forever, true
	}
	unit := time.Second
	switch arg[max(0, len(arg)-1):] {
	case "s":
		arg = arg[:len(arg)-1]
	case "m":
		arg, unit = arg[:len(arg)-1], time.Minute
	case "h":
		arg, unit = arg[:len(arg)-1], time.Hour
	case "d":
		arg, unit = arg[:len(arg)-1], 24*time.Hour
	}
	n, err := strconv.ParseFloat(arg, 64)
	if err != nil || n < 0 || n*float64(unit) > float64(forever/2) {
		return 0, false
	}
	return time.Duration(n * float64(unit)), true
}

func waitForJobs(ctx context.Context, p *process, _ []string) int {
	if p.jobs == nil {
		return 0
	}
	done := make(chan struct{})
	go func() { p.jobs.Wait(); close(done) }()
	select {
	case <-done:
		return 0
	case <-ctx.Done():
		return statusTerminated
	}
}

// tail -f blocks; without -f there is nothing to show.
func tail(ctx context.Context, p *process, args []string) int {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, "fF") {
			return sleep(ctx, p, []string{"infinity"})
		}
	}
	return 0
}

func leave(how string) builtin {
	return func(_ context.Context, p *process, _ []string) int {
		p.leaving = how
		return 0
	}
}

func eval(ctx context.Context, p *process, args []string) int {
	return p.source(ctx, strings.Join(args, " "))
}

func date(_ context.Context, p *process, args []string) int {
	now := time.Now()
	if len(args) > 0 && args[0] == "+%s" {
		fmt.Fprintln(p.streams.Out, now.Unix())
	} else {
		fmt.Fprintln(p.streams.Out, now.UTC().Format(time.UnixDate))
	}
	return 0
}

func hostname(_ context.Context, p *process, args []string) int {
	if len(args) > 0 && strings.HasPrefix(args[0], "-i") || len(args) > 0 && args[0] == "-I" {
		host, err := p.env.AdvertiseHost()
		if err != nil {
			fmt.Fprintf(p.streams.Err, "hostname: %v\n", err)
			return 1
		}
		fmt.Fprintln(p.streams.Out, host)
	} else {
		fmt.Fprintln(p.streams.Out, p.env.String("localhost", "HOSTNAME", "POD_NAME"))
	}
	return 0
}

// ray start is a program of the runtime; anything else asked of ray is done.
func ray(ctx context.Context, p *process, args []string) int {
	program, ok := recognise(append([]string{"ray"}, args...))
	if !ok {
		return 0
	}
	program.Env = p.exports()
	return p.shell.Run(ctx, program, p.streams)
}

// statusNoEntry is getent's for a key that is not in its database.
const statusNoEntry = 2

// getent hosts NAME tells by its status whether the cluster knows a name, which
// then stands for its address too: the two are dialled alike.
func getent(ctx context.Context, p *process, args []string) int {
	if len(args) < 2 || args[0] != "hosts" && args[0] != "ahosts" || p.shell.Resolves == nil {
		return 0
	}
	for _, host := range args[1:] {
		if !p.shell.Resolves(ctx, host, p.exports()) {
			return statusNoEntry
		}
		fmt.Fprintf(p.streams.Out, "%-15s %s\n", host, host)
	}
	return 0
}

func cat(_ context.Context, p *process, args []string) int {
	if len(args) == 0 {
		if p.streams.In != nil {
			_, _ = io.Copy(p.streams.Out, p.streams.In)
		}
		return 0
	}
	status := 0
	for _, name := range args {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintf(p.streams.Err, "cat: %v\n", err)
			status = 1
			continue
		}
		_, _ = p.streams.Out.Write(text)
	}
	return status
}

// tee passes its input on; the files it names are not written.
func tee(_ context.Context, p *process, _ []string) int {
	if p.streams.In != nil {
		_, _ = io.Copy(p.streams.Out, p.streams.In)
	}
	return 0
}
