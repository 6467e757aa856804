// Command benchmarks measures the operator on a local control plane: how long
// and how many requests graphs cost, against a bare client that makes the same
// objects in the same run. That client is the limit; the ratio to it is the
// figure that survives a change of machine.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are what can be chosen.
type options struct {
	bin    string
	counts []int
	// whole are numbers of graphs for a whole control plane.
	whole []int
	idle  time.Duration
	write string
	check string
	// fairness is a number of graphs to measure among other tenants; 0 for the usual
	// benchmarks.
	fairness int
	// pacing compares the operator with itself without what paces it; operator is a
	// program that was built so that it can be left out.
	pacing   bool
	operator string
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
	if o.fairness > 0 {
		return measureFairness(ctx, o)
	}
	if o.pacing {
		return measurePacing(ctx, o)
	}
	var results []result
	for _, run := range o.runs() {
		fmt.Printf("%d graphs, %s\n\n", run.graphs, run.where())
		r, err := middle(run, func() (result, error) { return measure(ctx, o, run) })
		if err != nil {
			return fmt.Errorf("%d graphs, %s: %w", run.graphs, run.where(), err)
		}
		fmt.Println(r.text())
		results = append(results, r)
		if o.write != "" { // a long run that is broken off has not been for nothing
			if err := writePage(o.write, results); err != nil {
				return err
			}
		}
	}
	if o.check != "" {
		return check(o.check, results)
	}
	return nil
}

// middle measures a run that takes only seconds three times, since a hiccup of
// the machine would decide it, and returns the one with the middle ratio.
func middle(run scale, measure func() (result, error)) (result, error) {
	times := 1
	if run.graphs <= 100 {
		times = 3
	}
	var all []result
	for range times {
		r, err := measure()
		if err != nil {
			return r, err
		}
		fmt.Fprintf(os.Stderr, "%d graphs: %.2f times the bare client\n", run.graphs, r.ratio())
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(a.ratio(), b.ratio()) })
	return all[len(all)/2], nil
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	var o options
	counts := flags.String("graphs", "100,1000", "numbers of graphs, by comma")
	flags.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	whole := flags.String("whole", "", "numbers of graphs, by comma, to run once more with the controller manager, the scheduler and a node")
	flags.DurationVar(&o.idle, "idle", 20*time.Second, "how long the operator is watched doing nothing")
	flags.StringVar(&o.write, "write", "", "folder for benchmarks.md and its plot")
	flags.StringVar(&o.check, "check", "", "file of ranges that the ratios must keep to")
	flags.IntVar(&o.fairness, "fairness", 0, "make so many graphs of one tenant in a quiet cluster and under the load of others, instead of the usual benchmarks")
	flags.BoolVar(&o.pacing, "pacing", false, "compare the operator with itself without each thing that paces it, instead of the usual benchmarks")
	flags.StringVar(&o.operator, "operator", "", "operator that was built with the tag unguarded, for -pacing")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.pacing && o.operator == "" {
		return o, errors.New("-pacing needs -operator")
	}
	var err error
	if o.counts, err = numbers(*counts); err != nil {
		return o, fmt.Errorf("-graphs: %w", err)
	}
	if o.whole, err = numbers(*whole); err != nil {
		return o, fmt.Errorf("-whole: %w", err)
	}
	return o, nil
}

func numbers(list string) ([]int, error) {
	var all []int
	for text := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no list of numbers", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// scale is one number of graphs on one kind of control plane.
type scale struct {
	graphs      int
	controllers bool
}

func (s scale) where() string {
	if s.controllers {
		return "with controller manager, scheduler and a node"
	}
	return "API server and etcd only"
}

func (o options) runs() []scale {
	var all []scale
	for _, n := range o.whole {
		all = append(all, scale{graphs: n, controllers: true})
	}
	for _, n := range o.counts {
		all = append(all, scale{graphs: n})
	}
	return all
}
