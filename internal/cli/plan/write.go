package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func writeJSON(out io.Writer, plans []Plan) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string]any{"plans": plans})
}

func writeTable(out io.Writer, plans []Plan) error {
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := p.table(out); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) table(out io.Writer) error {
	fmt.Fprintf(out, "%s/%s: %s\n", p.Namespace, p.Name, p.headline())
	if !p.Changes() {
		return nil
	}
	if len(p.Fields) > 0 {
		fmt.Fprintln(out)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "FIELD\tCHANGE\tREPLACES PODS OF\tSCALES")
		for _, f := range p.Fields {
			replaces := cmp.Or(strings.Join(f.Replaces, ", "), "-")
			if f.Together {
				replaces = "with other fields"
			}
			fmt.Fprintf(w, "%s\t%s -> %s\t%s\t%s\n", f.Path, f.Old, f.New, replaces, cmp.Or(strings.Join(f.Scales, ", "), "-"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nGPUs  now %d, peak %d%s, after %d\n", p.GPUs.Now, p.GPUs.Peak, p.GPUs.leaving(), p.GPUs.After)
	if err := p.steps(out); err != nil {
		return err
	}
	for _, r := range p.Rollouts {
		if err := r.table(out); err != nil {
			return err
		}
	}
	for _, s := range p.Services {
		if text := s.summary(); text != "" {
			fmt.Fprintf(out, "%s: %s\n", s.Name, text)
		}
	}
	for _, c := range p.Capacity {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(c.Effective)) {
			parts = append(parts, fmt.Sprintf("%s %d", name, c.Effective[name]))
		}
		fmt.Fprintf(out, "lowest effective replicas of %s: %s\n", c.Cell, strings.Join(parts, ", "))
	}
	fmt.Fprintf(out, "time: %s\n", p.duration())
	for _, n := range p.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	return nil
}

// steps is the table of those that replace pods.
func (p Plan) steps(out io.Writer) error {
	rolls := slices.DeleteFunc(slices.Clone(p.Services), func(s Service) bool { return len(s.Steps) == 0 })
	if len(rolls) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tSTEP\tOLD\tNEW\tSERVING AT LEAST")
	for _, s := range rolls {
		for i, step := range s.Steps {
			fmt.Fprintf(w, "%s\t%d %s\t%d\t%d\t%d of %d\n", s.Name, i+1, step.does(), step.Old, step.New, step.Lowest, s.Replicas[1])
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return nil
}

func (s Step) does() string {
	var parts []string
	if s.StartOld > 0 {
		parts = append(parts, fmt.Sprintf("start %d more of the old", s.StartOld))
	}
	if s.Start > 0 {
		parts = append(parts, fmt.Sprintf("start %d", s.Start))
	}
	if s.Stop > 0 {
		parts = append(parts, fmt.Sprintf("stop %d", s.Stop))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

func (p Plan) headline() string {
	by := map[Action]int{}
	for _, s := range p.Services {
		by[s.Action]++
	}
	switch replaced := by[InPlace] + by[Recreated] + by[ByGeneration]; {
	case !p.Changes():
		return "nothing changes"
	case replaced == 0 && by[GoesBack] > 0:
		return fmt.Sprintf("%s, no pod is replaced: %s go back to the stable generation", differ(len(p.Fields)), count(by[GoesBack], "service"))
	case len(p.Fields) == 0:
		return fmt.Sprintf("is not there yet and would be created with %s", count(len(p.Services), "service"))
	case replaced == 0:
		return differ(len(p.Fields)) + ", no pod is replaced"
	default:
		return fmt.Sprintf("%s, pods of %d of %s are replaced", differ(len(p.Fields)), replaced, count(len(p.Services), "service"))
	}
}

func differ(fields int) string {
	if fields == 1 {
		return "1 field differs"
	}
	return fmt.Sprintf("%d fields differ", fields)
}

func (g GPUs) leaving() string {
	if g.PeakLeaving == g.Peak {
		return ""
	}
	return fmt.Sprintf(" (%d while stopped pods shut down)", g.PeakLeaving)
}

// summary is a service in a line; empty if nothing happens to it.
func (s Service) summary() string {
	starts := ""
	if s.StartSeconds != nil && s.Starts > 0 {
		starts = fmt.Sprintf("; a start takes %v (median of %s)", time.Duration(*s.StartSeconds)*time.Second, count(s.StartPods, "pod"))
	}
	switch s.Action {
	case Created:
		return fmt.Sprintf("created with %s%s", count(s.Replicas[1], "replica"), starts)
	case Removed:
		return fmt.Sprintf("removed with its %s", count(s.Replicas[0], "replica"))
	case Scaled:
		return fmt.Sprintf("scaled from %d to %d, no pod replaced%s", s.Replicas[0], s.Replicas[1], starts)
	case InPlace:
		inTurn := count(s.Starts, "start")
		if s.Starts > 1 {
			inTurn += " one after the other"
		}
		return fmt.Sprintf("rolling update by its %s (surge %d, unavailable %d), %s%s", s.Workload, s.Surge, s.Unavailable, inTurn, starts)
	case ByGeneration:
		return fmt.Sprintf("a generation of its own (surge %d, unavailable %d)%s", s.Surge, s.Unavailable, starts)
	case GoesBack:
		return fmt.Sprintf("back to the stable generation (surge %d, unavailable %d)%s", s.Surge, s.Unavailable, starts)
	case Recreated:
		return fmt.Sprintf("every pod stops before the first new one starts%s", starts)
	case OnDelete:
		return "changed, but no pod is replaced"
	default:
		return ""
	}
}

func (p Plan) duration() string {
	if p.Seconds == nil {
		var missing []string
		for _, s := range p.Services {
			if s.Starts > 0 && s.StartSeconds == nil {
				missing = append(missing, s.Name)
			}
		}
		return fmt.Sprintf("unknown, no start of %s was measured", strings.Join(missing, ", "))
	}
	if *p.Seconds == 0 {
		return "nothing has to start"
	}
	return fmt.Sprintf("about %v", time.Duration(*p.Seconds)*time.Second)
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
