package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/exit"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/liveview"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// Codes with which status ends.
const (
	codeAborted = 2
	codeWaits   = 3
	codeNotDone = 4
)

const statusHelp = `Show how far a rollout is, what serves meanwhile, and what it waits for.

The code is 0 if the rollout is completed or there was none, 2 if it was aborted, 3 if
it is held or blocked until somebody does something, and 4 if it is not done: with
--watch, not within --timeout.`

func statusCommand() *cobra.Command {
	var follow bool
	var timeout time.Duration
	command := verb("status", "Show how far a rollout is and what serves meanwhile", statusHelp, func(ctx context.Context, t target, out, _ io.Writer) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if follow {
			return t.follow(ctx, out, timeout)
		}
		dgd, err := t.graph(ctx)
		if err != nil {
			return err
		}
		for _, line := range lines(dgd) {
			fmt.Fprintln(out, line)
		}
		return ended(dgd)
	})
	command.Flags().BoolVarP(&follow, "watch", "w", false, "go on until the rollout ends, or waits for somebody")
	command.Flags().DurationVar(&timeout, "timeout", 0, "how long to go on; 0 is for ever")
	return command
}

// end is where a rollout stands for whoever waits for it.
type end int

const (
	goesOn end = iota
	completed
	aborted
	// waits is for somebody: time alone does not end it.
	waits
)

// endOf is where the rollout of a graph stands. A status of an earlier spec says
// nothing about this one.
func endOf(dgd *v1alpha1.DynamoGraphDeployment) end {
	r := dgd.Status.Rollout
	if dgd.Status.ObservedGeneration != dgd.Generation {
		return goesOn
	}
	if r == nil {
		return completed
	}
	switch generation.Phase(r.Phase) {
	case generation.PhaseCompleted:
		return completed
	case generation.PhaseAborted:
		return aborted
	case generation.PhaseBlocked:
		return waits
	case generation.PhaseHeld:
		if w := policy.Waits(r.Reason); w == policy.WaitsForTime || w == policy.WaitsForAnalysis {
			return goesOn
		}
		return waits
	default:
		return goesOn
	}
}

func ended(dgd *v1alpha1.DynamoGraphDeployment) error {
	switch endOf(dgd) {
	case completed:
		return nil
	case aborted:
		return exit.With{Code: codeAborted}
	case waits:
		return exit.With{Code: codeWaits}
	default:
		return exit.With{Code: codeNotDone}
	}
}

// follow shows a rollout as it changes, until it ends or waits for somebody.
func (t target) follow(ctx context.Context, out io.Writer, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	drawing := liveview.New(out)
	for {
		dgd, err := t.changed(ctx, drawing)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return exit.With{Code: codeNotDone, Message: fmt.Sprintf("the rollout of %s is not done after %s", t.name, timeout)}
		case ctx.Err() != nil:
			return exit.With{Code: codeNotDone}
		case err != nil:
			return err
		case dgd != nil:
			return ended(dgd)
		}
	}
}

// changed shows the graph whenever it changes; it returns the graph once the rollout
// has ended, or nil when the watch has, as watches do.
func (t target) changed(ctx context.Context, drawing *liveview.Picture) (*v1alpha1.DynamoGraphDeployment, error) {
	changes, err := t.Watch(ctx, &v1alpha1.DynamoGraphDeploymentList{}, client.InNamespace(t.namespace))
	if err != nil {
		return nil, fmt.Errorf("watch graphs of namespace %s: %w", t.namespace, err)
	}
	defer changes.Stop()
	// Read after the watch began: nothing is missed in between.
	dgd, err := t.graph(ctx)
	if err != nil {
		return nil, err
	}
	for {
		drawing.Show(lines(dgd))
		if endOf(dgd) != goesOn {
			return dgd, nil
		}
		next, err := t.next(ctx, changes)
		if next == nil || err != nil {
			return nil, err
		}
		dgd = next
	}
}

// next is the graph after its next change; nil when the watch has ended.
func (t target) next(ctx context.Context, changes watch.Interface) (*v1alpha1.DynamoGraphDeployment, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event, open := <-changes.ResultChan():
			if !open {
				return nil, nil //nolint:nilnil // the watch ended, which is no error
			}
			dgd, is := event.Object.(*v1alpha1.DynamoGraphDeployment)
			if !is || dgd.Name != t.name {
				continue
			}
			if event.Type == watch.Deleted {
				return nil, fmt.Errorf("graph %s/%s is deleted", t.namespace, t.name)
			}
			return dgd, nil
		}
	}
}

// lines draws the rollout of a graph.
func lines(dgd *v1alpha1.DynamoGraphDeployment) []string {
	var text strings.Builder
	write(&text, dgd)
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

func write(out io.Writer, dgd *v1alpha1.DynamoGraphDeployment) {
	r := dgd.Status.Rollout
	if dgd.Status.ObservedGeneration != dgd.Generation {
		fmt.Fprintf(out, "%s  the operator has not seen the last change yet\n", dgd.Name)
		return
	}
	if r == nil {
		fmt.Fprintf(out, "%s  no rollout\n", dgd.Name)
		return
	}
	fmt.Fprintf(out, "%s  %s\n", dgd.Name, Headline(r))
	facts := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range Facts(dgd) {
		fmt.Fprintf(facts, "%s\t%s\n", f.Name, f.Value)
	}
	_ = facts.Flush() // to a buffer
	writeRoles(out, r)
	writeGenerations(out, r)
}

// Fact is something to know about a rollout.
type Fact struct{ Name, Value string }

// Facts are what there is to know about the rollout of a graph, which has one.
func Facts(dgd *v1alpha1.DynamoGraphDeployment) []Fact {
	r := dgd.Status.Rollout
	phase := r.Phase
	if r.Reason != "" {
		phase += " (" + r.Reason + ")"
	}
	if r.Message != "" {
		phase += ": " + r.Message
	}
	all := []Fact{{"phase", phase}, {"step", r.Step}}
	if r.StartedAt != nil {
		all = append(all, Fact{"started", r.StartedAt.UTC().Format(time.RFC3339)})
	}
	if r.ProgressedAt != nil {
		all = append(all, Fact{"progressed", r.ProgressedAt.UTC().Format(time.RFC3339)})
	}
	if r.GPUs != nil {
		all = append(all, Fact{"GPUs", fmt.Sprintf("%d now, %d at the peak", r.GPUs.Now, r.GPUs.Peak)})
	}
	all = append(all, Fact{"analysis", analysis(r.Analysis)}, Fact{"next", advice(dgd)})
	return slices.DeleteFunc(all, func(f Fact) bool { return f.Value == "" })
}

// Headline is what a rollout is about.
func Headline(r *v1alpha1.RolloutStatus) string {
	to := fmt.Sprintf("revision %d, generation %s", r.Revision, named(r.Target))
	if r.Stable != r.Target {
		return to + " replaces " + named(r.Stable)
	}
	return to
}

// named is a generation; the first of a graph may have no id.
func named(id string) string { return cmp.Or(id, "-") }

func analysis(a *v1alpha1.RolloutAnalysis) string {
	if a == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%s, %d requests", a.Verdict, a.Samples)}
	for _, pair := range []struct {
		name   string
		values []string
	}{{"errors", a.Errors}, {"TTFT p95", a.TTFTP95}, {"ITL p95", a.ITLP95}} {
		if len(pair.values) == 2 {
			parts = append(parts, fmt.Sprintf("%s %s beside %s", pair.name, pair.values[0], pair.values[1]))
		}
	}
	return strings.Join(parts, "; ")
}

// advice is the command that a rollout waits for.
func advice(dgd *v1alpha1.DynamoGraphDeployment) string {
	r := dgd.Status.Rollout
	order := func(verb string) string { return "kubectl dynamo rollout " + verb + " " + dgd.Name }
	switch generation.Phase(r.Phase) {
	case generation.PhaseAborted:
		return order("undo") + ", or " + order("retry")
	case generation.PhaseHeld:
		switch {
		case r.Reason == string(generation.ReasonPaused):
			return order("resume")
		case r.Reason == string(generation.ReasonNothingDesired):
			return "" // nobody's order brings replicas
		case heldAfterFailure(r):
			return order("promote") + " --all, or " + order("abort")
		case endOf(dgd) == waits:
			return order("promote") + ", or " + order("abort")
		}
	case generation.PhaseBlocked:
		return order("abort") + ", or what the message names"
	}
	return ""
}

func writeRoles(out io.Writer, r *v1alpha1.RolloutStatus) {
	if len(r.Roles) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nROLE\tDESIRED\tFLOOR\tEFFECTIVE\tLOWEST")
	for _, name := range slices.Sorted(maps.Keys(r.Roles)) {
		role := r.Roles[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", name, role.Desired, role.Floor, role.Effective, role.Lowest)
	}
	_ = w.Flush() // to a buffer
}

func writeGenerations(out io.Writer, r *v1alpha1.RolloutStatus) {
	if len(r.Generations) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nGENERATION\tREVISION\tSHARE\tROLE\tREPLICAS\tROUTABLE\tSTARTING\tLEAVING\tFAILING")
	for _, g := range r.Generations {
		id, number, share := named(g.ID), fmt.Sprint(g.Revision), cmp.Or(g.Share, "-")
		for _, name := range slices.Sorted(maps.Keys(g.Roles)) {
			n := g.Roles[name]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", id, number, share, name, n.Replicas, n.Routable, n.Starting, n.Leaving, n.Failing)
			id, number, share = "", "", ""
		}
	}
	_ = w.Flush() // to a buffer
}
