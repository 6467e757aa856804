package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Kind is the customary name of a way to spread an engine over GPUs.
type Kind string

// The kinds: every layer sliced; the same with whole experts on each GPU; one
// attention rank per GPU, or per few, with the experts spread over all; and
// ranks that share nothing.
const (
	TP  Kind = "TP"
	TEP Kind = "TEP"
	DEP Kind = "DEP"
	DP  Kind = "DP"
)

// Layout is how one engine is spread over GPUs.
type Layout struct {
	Kind     Kind
	Parallel perfmodel.Parallel
}

// GPUs of one engine.
func (l Layout) GPUs() int { return l.Parallel.GPUs() }

// Ranks are the attention ranks, each with requests of its own.
func (l Layout) Ranks() int { return max(1, l.Parallel.DP) }

// Nodes of one engine.
func (l Layout) Nodes(perNode int) int { return (l.GPUs() + perNode - 1) / perNode }

// String is short enough for a table: TP4, TEP8, DEP8, TP4-PP2, DP4-TP2.
func (l Layout) String() string {
	p := l.Parallel
	var text string
	switch l.Kind {
	case TEP:
		text = fmt.Sprintf("TEP%d", p.TP)
	case DEP:
		text = fmt.Sprintf("DEP%d", p.TP*p.DP)
		if p.TP > 1 {
			text += fmt.Sprintf("-TP%d", p.TP)
		}
	case DP:
		text = fmt.Sprintf("DP%d-TP%d", p.DP, p.TP)
	default:
		text = fmt.Sprintf("TP%d", p.TP)
	}
	if p.PP > 1 {
		text += fmt.Sprintf("-PP%d", p.PP)
	}
	return text
}

// name is the layout within an object's name.
func (l Layout) name() string { return strings.ToLower(l.String()) }

// counts are the numbers of GPUs to try between the bounds: powers of two, and
// others that a node holds or that fill nodes.
func counts(least, most, perNode int) []int {
	var all []int
	for n := max(1, least); n <= most; n++ {
		if usual(n) || n <= perNode || n%perNode == 0 {
			all = append(all, n)
		}
	}
	return all
}

// usual numbers are powers of two, which every model divides into or should.
func usual(n int) bool { return n&(n-1) == 0 }

// layouts are the ways to spread an engine over n GPUs that its command line can
// say. Over a power of two they are listed whether or not the model divides so, over
// other numbers only if it does, its layers and experts evenly.
func layouts(n int, m perfmodel.Model, engine perfmodel.Engine) []Layout {
	if usual(n) {
		return ways(n, m, engine)
	}
	return slices.DeleteFunc(ways(n, m, engine), func(l Layout) bool {
		p := l.Parallel
		return l.Kind == DP || m.Layers%p.PP != 0 || m.Mixture() && m.Experts.Count%p.EP != 0 ||
			perfmodel.Setup{Model: m, Parallel: p}.Validate() != nil
	})
}

func ways(n int, m perfmodel.Model, engine perfmodel.Engine) []Layout {
	all := []Layout{{TP, perfmodel.Parallel{TP: n, PP: 1, DP: 1, EP: 1}}}
	for _, pp := range divisors(n) {
		if pp <= 8 {
			all = append(all, Layout{TP, perfmodel.Parallel{TP: n / pp, PP: pp, DP: 1, EP: 1}})
		}
	}
	if n == 1 {
		return all
	}
	if !m.Mixture() {
		// TensorRT-LLM has no ranks that share nothing; replicas do the same.
		for _, dp := range divisors(n) {
			if engine != perfmodel.TRTLLM {
				all = append(all, Layout{DP, perfmodel.Parallel{TP: n / dp, PP: 1, DP: dp, EP: 1}})
			}
		}
		return all
	}
	all = append(all, Layout{TEP, perfmodel.Parallel{TP: n, PP: 1, DP: 1, EP: n}})
	for _, dp := range divisors(n) {
		// TensorRT-LLM makes every GPU an attention rank or none.
		if engine != perfmodel.TRTLLM || dp == n {
			all = append(all, Layout{DEP, perfmodel.Parallel{TP: n / dp, PP: 1, DP: dp, EP: n}})
		}
	}
	return all
}

// divisors of n, but for one.
func divisors(n int) []int {
	var all []int
	for d := 2; d <= n; d++ {
		if n%d == 0 {
			all = append(all, d)
		}
	}
	return all
}

// placeable says why a layout cannot be put on nodes, or nothing.
func (l Layout) placeable(perNode int) string {
	n := l.GPUs()
	switch {
	case n <= perNode:
		return ""
	case n%perNode != 0:
		return fmt.Sprintf("%d GPUs do not fill nodes of %d", n, perNode)
	case l.Parallel.DP > 1 && (l.Parallel.TP > perNode || perNode%l.Parallel.TP != 0):
		return fmt.Sprintf("an attention rank of %d GPUs does not fit a node of %d", l.Parallel.TP, perNode)
	default:
		return ""
	}
}

// sortLayouts puts the simplest first, so that ties go to it.
func sortLayouts(all []Layout) {
	order := []Kind{TP, TEP, DEP, DP}
	slices.SortStableFunc(all, func(a, b Layout) int {
		if c := a.GPUs() - b.GPUs(); c != 0 {
			return c
		}
		if c := slices.Index(order, a.Kind) - slices.Index(order, b.Kind); c != 0 {
			return c
		}
		return a.Parallel.PP*100 + a.Parallel.DP - b.Parallel.PP*100 - b.Parallel.DP
	})
}

func (l Layout) parts() int {
	n := 0
	for _, size := range []int{l.Parallel.PP, l.Parallel.DP, l.Parallel.EP} {
		if size > 1 {
			n++
		}
	}
	return n
}
