package scale

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// tell is a decision in its own words.
func tell(out io.Writer, r journal.Record, teller string) {
	for i, word := range r.Words {
		if i == 0 {
			fmt.Fprintf(out, "%s  %s  (%s)\n", r.At.UTC().Format(time.RFC3339), sanitise.Line(word), sanitise.Line(teller))
			continue
		}
		fmt.Fprintf(out, "  %s\n", sanitise.Line(word))
	}
	if len(r.Words) == 0 {
		fmt.Fprintf(out, "%s  %s  (%s)\n", r.At.UTC().Format(time.RFC3339), sanitise.Line(string(r.Reason)), sanitise.Line(teller))
	}
	if why := Unwritten(r); why != "" {
		fmt.Fprintf(out, "  %s\n", why)
	}
}

// Unwritten is what kept a decision from being written; empty if nothing did.
func Unwritten(r journal.Record) string {
	switch {
	case r.Failed != "":
		return "not written: " + sanitise.Line(r.Failed)
	case r.Advisory && r.From != r.To:
		return "not written: it only advises"
	}
	return ""
}

func writeHistory(out io.Writer, f facts) error {
	if len(f.decisions) == 0 {
		fmt.Fprintf(out, "%s has decided nothing yet\n", sanitise.Line(f.from))
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tREASON\tPREFILL\tDECODE\tGPUS\tCOST\tPOLICY\tNOTE")
	for _, r := range f.decisions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.At.UTC().Format(time.RFC3339), sanitise.Line(string(r.Reason)),
			change(r.From.Prefill, r.To.Prefill), change(r.From.Decode, r.To.Decode), r.GPUs, cost(r), cmp.Or(sanitise.Line(r.Policy), "-"), cmp.Or(Unwritten(r), sanitise.Line(r.Limited), "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if f.unasked != nil {
		fmt.Fprintf(out, "only the last, of the %s: %s\n", sanitise.Line(f.from), sanitise.Line(f.unasked.Error()))
	}
	return nil
}

// cost is what replicas cost before and after; planners of older releases do not tell.
func cost(r journal.Record) string {
	switch {
	case r.Cost != nil:
		return change(price.Rate(r.Cost.From), price.Rate(r.Cost.To))
	case r.Unpriced != "":
		return "unknown"
	}
	return "-"
}

func change[T comparable](from, to T) string {
	if from == to {
		return fmt.Sprint(to)
	}
	return fmt.Sprintf("%v → %v", from, to)
}
