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

	"mvdan.cc/sh/v3/interp"
)

// builtin is a command the mock plays itself, beside those of the interpreter.
type builtin func(ctx context.Context, c command, args []string) int

var builtins map[string]builtin

// harmless commands prepare a container; here there is nothing to prepare.
var harmless = []string{
	":", "true", "cd", "mkdir", "cp", "mv", "rm", "ln", "touch", "chmod", "chown", "ls", "ssh-keygen", "ulimit", "umask", "trap",
	"source", ".", "ldconfig", "pip", "pip3", "apt-get", "apt", "git", "hf", "huggingface-cli", "modelexpress-cli",
	"sysctl", "hash", "stty", "unalias", "alias", "shopt", "sync", "aiperf",
}

func init() { // not a literal: ray refers back to the table
	builtins = map[string]builtin{
		"sleep":      sleep,
		"tail":       tail,
		"date":       date,
		"hostname":   hostname,
		"getent":     getent,
		"ray":        ray,
		"cat":        cat,
		"tee":        tee,
		"sed":        sed,
		"grep":       grep,
		"awk":        awk,
		"nvidia-smi": nvidiaSMI,
		"curl":       curl,
		"jq":         jq,
		"id":         func(_ context.Context, c command, _ []string) int { fmt.Fprintln(c.streams.Out, 1000); return 0 },
		"nproc":      func(_ context.Context, c command, _ []string) int { fmt.Fprintln(c.streams.Out, 1); return 0 },
		"which":      func(context.Context, command, []string) int { return 0 },
	}
	for _, name := range harmless {
		if !interp.IsBuiltin(name) {
			builtins[name] = func(context.Context, command, []string) int { return 0 }
		}
	}
}

// forever is as good as infinity for a pod.
const forever = time.Duration(math.MaxInt64)

func sleep(ctx context.Context, c command, args []string) int {
	var total time.Duration
	for _, arg := range args {
		d, ok := sleepTime(arg)
		if !ok {
			fmt.Fprintf(c.streams.Err, "sleep: invalid time interval %q\n", arg)
			return 1
		}
		if d == forever {
			total = forever
			break
		}
		total += d
	}
	if c.shell.Wait(ctx, total) != nil {
		return statusTerminated
	}
	return 0
}

var units = map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

func sleepTime(arg string) (time.Duration, bool) {
	if arg == "infinity" || arg == "inf" {
		return forever, true
	}
	number := strings.TrimRight(arg, "smhd")
	unit := units[arg[len(number):]]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || unit == 0 || n < 0 || n*float64(unit) > float64(forever/2) {
		return 0, false
	}
	return time.Duration(n * float64(unit)), true
}

// tail -f blocks; without -f there is nothing to show.
func tail(ctx context.Context, c command, args []string) int {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, "fF") {
			return sleep(ctx, c, []string{"infinity"})
		}
	}
	return 0
}

func date(_ context.Context, c command, args []string) int {
	now := time.Now()
	if len(args) > 0 && args[0] == "+%s" {
		fmt.Fprintln(c.streams.Out, now.Unix())
	} else {
		fmt.Fprintln(c.streams.Out, now.UTC().Format(time.UnixDate))
	}
	return 0
}

func hostname(_ context.Context, c command, args []string) int {
	if len(args) > 0 && strings.HasPrefix(args[0], "-i") || len(args) > 0 && args[0] == "-I" {
		host, err := c.env.AdvertiseHost()
		if err != nil {
			fmt.Fprintf(c.streams.Err, "hostname: %v\n", err)
			return 1
		}
		fmt.Fprintln(c.streams.Out, host)
	} else {
		fmt.Fprintln(c.streams.Out, c.env.String("localhost", "HOSTNAME", "POD_NAME"))
	}
	return 0
}

// ray start is a program of the runtime; anything else asked of ray is done.
func ray(ctx context.Context, c command, args []string) int {
	program, ok := recognise(append([]string{"ray"}, args...))
	if !ok {
		return 0
	}
	program.Env = c.env
	return c.shell.Run(ctx, program, c.streams)
}

// statusNoEntry is getent's for a key that is not in its database.
const statusNoEntry = 2

// getent hosts NAME tells by its status whether the cluster knows a name, which
// then stands for its address too: the two are dialled alike.
func getent(ctx context.Context, c command, args []string) int {
	if len(args) < 2 || args[0] != "hosts" && args[0] != "ahosts" || c.shell.Resolves == nil {
		return 0
	}
	for _, host := range args[1:] {
		if !c.shell.Resolves(ctx, host, c.env) {
			return statusNoEntry
		}
		fmt.Fprintf(c.streams.Out, "%-15s %s\n", host, host)
	}
	return 0
}

func cat(_ context.Context, c command, args []string) int {
	if len(args) == 0 {
		if c.streams.In != nil {
			_, _ = io.Copy(c.streams.Out, c.streams.In)
		}
		return 0
	}
	status := 0
	for _, name := range args {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintf(c.streams.Err, "cat: %v\n", err)
			status = 1
			continue
		}
		_, _ = c.streams.Out.Write(text)
	}
	return status
}

// tee passes its input on; the files it names are not written.
func tee(_ context.Context, c command, _ []string) int {
	if c.streams.In != nil {
		_, _ = io.Copy(c.streams.Out, c.streams.In)
	}
	return 0
}
