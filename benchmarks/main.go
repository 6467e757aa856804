// Command benchmarks measures the operator on a local control plane: how long
// and how many requests graphs cost, against a bare client that makes the same
// objects in the same run. That client is the limit; the ratio to it is the
// figure that survives a change of machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// options are what can be chosen.
type options struct {
	bin         string
	counts      []int
	controllers bool
	idle        time.Duration
	write       string
	check       string
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var results []result
	for _, count := range o.counts {
		fmt.Printf("%d graphs\n", count)
		r, err := measure(ctx, o, count)
		if err != nil {
			return fmt.Errorf("%d graphs: %w", count, err)
		}
		fmt.Println(r.text())
		results = append(results, r)
	}
	if o.write != "" {
		if err := writePage(o.write, results); err != nil {
			return err
		}
	}
	if o.check != "" {
		return check(o.check, results)
	}
	return nil
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	var o options
	counts := flags.String("graphs", "100,1000", "numbers of graphs, by comma")
	flags.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	flags.BoolVar(&o.controllers, "controllers", false, "also run the controller manager, the scheduler and a node")
	flags.DurationVar(&o.idle, "idle", 20*time.Second, "how long the operator is watched doing nothing")
	flags.StringVar(&o.write, "write", "", "folder for benchmarks.md and its plot")
	flags.StringVar(&o.check, "check", "", "file of ranges that the ratios must keep to")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*counts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-graphs %q: want numbers", *counts)
		}
		o.counts = append(o.counts, n)
	}
	return o, nil
}
