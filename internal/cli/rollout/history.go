package rollout

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/output"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

func historyCommand() *cobra.Command {
	var number int64
	command := verb("history", "List the specs that were rolled out, and what became of them", "", func(ctx context.Context, t target, out, _ io.Writer) error {
		return t.history(ctx, out, number)
	})
	command.Flags().Int64Var(&number, "revision", 0, "print the graph as it was in this one")
	return command
}

func (t target) history(ctx context.Context, out io.Writer, number int64) error {
	dgd, err := t.graph(ctx)
	if err != nil {
		return err
	}
	all, err := t.revisions(ctx, dgd)
	if err != nil {
		return err
	}
	if number == 0 {
		return writeHistory(out, t.name, all)
	}
	r := revision.Numbered(all, number)
	if r == nil {
		return unknown(t.name, number, all)
	}
	shown, err := manifestOf(dgd, r)
	if err != nil {
		return err
	}
	return output.YAML.Write(sanitise.Document(out), []map[string]any{shown}, true)
}

func unknown(name string, number int64, all []*appsv1.ControllerRevision) error {
	var known []string
	for _, r := range all {
		known = append(known, fmt.Sprint(r.Revision))
	}
	return fmt.Errorf("graph %s has no revision %d; it has %s", name, number, cmp.Or(strings.Join(known, ", "), "none"))
}

func writeHistory(out io.Writer, name string, all []*appsv1.ControllerRevision) error {
	if len(all) == 0 {
		fmt.Fprintf(out, "%s  no revisions\n", name)
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tGENERATION\tRESULT\tSTARTED\tTOOK\tLOWEST\tPEAK GPUS\tCHANGE-CAUSE")
	for _, r := range all {
		p := past(r)
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Revision, p.Generation, p.Result, p.Started, p.Took, p.Lowest, p.PeakGPUs, p.Cause)
	}
	return w.Flush()
}

// Past is what is remembered of one rollout, in words; what is not known is a dash.
type Past struct {
	Revision                                                   int64
	Generation, Result, Started, Took, Lowest, PeakGPUs, Cause string
}

// History are the rollouts of a graph that are remembered, the oldest first.
func History(ctx context.Context, cluster client.WithWatch, key types.NamespacedName) ([]Past, error) {
	t := target{cluster, key.Namespace, key.Name}
	dgd, err := t.graph(ctx)
	if err != nil {
		return nil, err
	}
	revisions, err := t.revisions(ctx, dgd)
	if err != nil {
		return nil, err
	}
	var all []Past
	for _, r := range revisions {
		all = append(all, past(r))
	}
	return all, nil
}

func past(r *appsv1.ControllerRevision) Past {
	record := revision.RecordOf(r)
	p := Past{
		Revision: r.Revision, Generation: named(revision.Generation(r)), Result: result(r, record), Started: "-", Took: "-",
		Lowest: lowest(record), PeakGPUs: "-", Cause: cmp.Or(revision.ChangeCause(r), "-"),
	}
	if record.StartedAt != nil {
		p.Started = record.StartedAt.UTC().Format(time.RFC3339)
		if record.EndedAt != nil {
			p.Took = record.EndedAt.Sub(record.StartedAt.Time).Round(time.Second).String()
		}
	}
	if record.PeakGPUs > 0 {
		p.PeakGPUs = fmt.Sprint(record.PeakGPUs)
	}
	return p
}

func result(r *appsv1.ControllerRevision, record revision.Record) string {
	text := cmp.Or(string(revision.ResultOf(r)), "-")
	if record.Reason != "" {
		text += " (" + record.Reason + ")"
	}
	return text
}

func lowest(record revision.Record) string {
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(record.Lowest)) {
		parts = append(parts, fmt.Sprintf("%s %d", role, record.Lowest[role]))
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// manifestOf is the graph as it was in a revision, as its author would write it.
func manifestOf(dgd *v1alpha1.DynamoGraphDeployment, r *appsv1.ControllerRevision) (map[string]any, error) {
	restored, err := revision.Restore(dgd, r)
	if err != nil {
		return nil, err
	}
	return manifest(restored)
}
