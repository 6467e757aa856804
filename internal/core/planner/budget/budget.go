// Package budget says how many replicas the services of a graph may have, whoever asked
// for them: an autoscaler, a planner or a person. Budgets are GPUs of a graph, of a
// namespace and of all; what starts and what ends counts. It divides by package
// arbitration, and starts and ends nothing.
package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/arbitration"
)

// Budgets are those of the configuration; 0 is none.
type Budgets struct {
	Cluster    int
	Namespaces map[string]int
}

// Shared reports whether graphs of a namespace share a budget with others.
func (b Budgets) Shared(namespace string) bool { return b.Cluster > 0 || b.Namespaces[namespace] > 0 }

// Graph is one that wants replicas.
type Graph struct {
	Namespace, Name string
	// Budget is its own; 0 is none.
	Budget int
	// Class is the value of the PriorityClass that its pods have, and orders all graphs.
	// Priority orders those of one class in one namespace.
	Class, Priority int
	Services        []Service
}

// Service is a part of a graph. Those without GPUs are in nobody's way.
type Service struct {
	Name string
	// GPUs of one replica.
	GPUs int
	// Wanted is what was asked for, Granted what the service was last told to have, and
	// Held what has GPUs now: what was granted, what is still there, and what ends.
	Wanted, Granted, Held int
	// Unshown are those of Wanted whose pods do not come. A class above 0 does not count for
	// them: a quota may refuse them, and nobody else would have their GPUs.
	Unshown int
	// Cut says that it has just been given less than it had; it keeps the rest for now.
	Cut bool
}

// floor is the fewest replicas that a service is left with. The first is never taken
// away: a role without one serves nobody.
func (s Service) floor() int { return min(1, s.Wanted) }

// Limit is a service that may not have what was asked for.
type Limit struct {
	Service         string
	Wanted, Granted int
	// Budget is whose budget it is, By what it is and Holders who has its GPUs.
	Budget, By string
	Holders    []string
}

func (l Limit) String() string {
	text := fmt.Sprintf("%s has %d of %d replicas: %s", l.Service, l.Granted, l.Wanted, l.By)
	if len(l.Holders) > 0 {
		text += ", held by " + strings.Join(l.Holders, ", ")
	}
	return text
}

// Grants are the replicas of one graph's services that have GPUs, and what is limited.
func Grants(b Budgets, graphs []Graph, namespace, name string) (map[string]int, []Limit) {
	all := claims(graphs)
	inside := pass(all, namespaceOf, func(c claim) []level {
		var levels []level
		if c.graph.Budget > 0 {
			levels = append(levels, level{"graph " + c.graph.Name, fmt.Sprintf("the budget of graph %s is %d GPUs", c.graph.Name, c.graph.Budget), c.graph.Namespace + "/" + c.graph.Name, c.graph.Budget})
		}
		if n := b.Namespaces[c.graph.Namespace]; n > 0 {
			levels = append(levels, level{"namespace " + c.graph.Namespace, fmt.Sprintf("the budget of namespace %s is %d GPUs", c.graph.Namespace, n), c.graph.Namespace, n})
		}
		return levels
	})
	result := inside
	if b.Cluster > 0 {
		for i := range all {
			all[i].wanted = min(all[i].wanted, inside[i].now)
		}
		result = across(all, level{"cluster", fmt.Sprintf("the budget of the cluster is %d GPUs", b.Cluster), "", b.Cluster})
	}
	granted := map[string]int{}
	var limits []Limit
	for i, c := range all {
		if c.graph.Namespace != namespace || c.graph.Name != name || c.unshown {
			continue
		}
		got, limiting := result[i].now, []outcome{inside[i], result[i]}
		if next := i + 1; next < len(all) && all[next].unshown {
			got, limiting = got+result[next].now, append(limiting, inside[next], result[next])
		}
		n := settle(c.service, got)
		granted[c.service.Name] = n
		if by := first(limiting); n < c.service.Wanted {
			limits = append(limits, Limit{c.service.Name, c.service.Wanted, n, by.budget, by.by, by.holders})
		}
	}
	return granted, limits
}

// across divides what all namespaces share. An annotation is anybody's to write, while who may
// use a PriorityClass is said by quotas: so a priority must neither bring a namespace more nor
// lend a class to others. What the graphs of one class in a namespace get is found by classes,
// and divided among them by priorities. What sizes leave over there goes to whom it fits.
func across(all []claim, shared level) []outcome {
	one, only := func(claim) string { return "" }, func(claim) []level { return []level{shared} }
	classed, place := slices.Clone(all), numbers(places(all))
	for i := range classed {
		classed[i].priority = classed[i].class
	}
	gets := map[string]int{}
	for i, o := range pass(classed, one, only) {
		gets[peersOf(all[i])] += o.share * all[i].service.GPUs
	}
	divided := pass(all, peersOf, func(c claim) []level {
		return []level{{shared.whose, shared.says, peersOf(c), gets[peersOf(c)]}}
	})
	for i := range classed {
		classed[i].floor, classed[i].priority = divided[i].share, place[i]
	}
	return pass(classed, one, only)
}

// rank is a place in an order: by class, and in one class by the other number.
type rank struct{ class, in int }

// places are ranks that mean the same in all namespaces: in one class by how many priorities
// come before, so that the first are equal, whatever their number and whoever is behind them.
func places(all []claim) []rank {
	known := map[string][]int{}
	for _, c := range all {
		known[peersOf(c)] = append(known[peersOf(c)], c.priority)
	}
	for peers, priorities := range known {
		slices.Sort(priorities)
		known[peers] = slices.Compact(priorities)
	}
	out := make([]rank, len(all))
	for i, c := range all {
		peers := known[peersOf(c)]
		at, _ := slices.BinarySearch(peers, c.priority)
		out[i] = rank{c.class, at - len(peers)}
	}
	return out
}

// numbers are ranks as single numbers of the same order.
func numbers(ranks []rank) []int {
	compare := func(a, b rank) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.in, b.in)) }
	sorted := slices.Compact(slices.SortedFunc(slices.Values(ranks), compare))
	out := make([]int, len(ranks))
	for i := range ranks {
		out[i], _ = slices.BinarySearchFunc(sorted, ranks[i], compare)
	}
	return out
}

// settle is what a service is told. It is cut by one replica at a time, with a pause that
// lets it drain, and never below its floor.
func settle(s Service, granted int) int {
	if keeps := min(s.Granted, s.Wanted); granted < keeps {
		step := 1
		if s.Cut {
			step = 0
		}
		granted = max(granted, keeps-step, min(keeps, s.floor()))
	}
	return granted
}

// claim is what a service wants, or a part of it.
type claim struct {
	graph   Graph
	service Service
	// unshown says that it is what the service wants without the class of its graph.
	unshown                      bool
	class                        int
	floor, wanted, granted, held int
	// priority is by class, and in one class by that of the graph.
	priority int
}

func namespaceOf(c claim) string { return c.graph.Namespace }

// peersOf names those that priorities order.
func peersOf(c claim) string { return fmt.Sprintf("%s/%d", c.graph.Namespace, c.class) }

// level is a budget that a claim counts against.
type level struct {
	whose, says, key string
	gpus             int
}

type outcome struct {
	// share is what is due, now as much of it as there are free GPUs for.
	share      int
	now        int
	budget, by string
	holders    []string
}

// first is the first of outcomes that a budget limits.
func first(all []outcome) outcome {
	for _, o := range all {
		if o.by != "" {
			return o
		}
	}
	return outcome{budget: "draining", by: "GPUs are not free yet"}
}

func claims(graphs []Graph) []claim {
	var all []claim
	var order []rank
	for _, g := range graphs {
		for _, s := range g.Services {
			for _, c := range parts(g, s) {
				all, order = append(all, c), append(order, rank{c.class, g.Priority})
			}
		}
	}
	for i, n := range numbers(order) {
		all[i].priority = n
	}
	return all
}

// parts are what a service claims by the class of its graph and, after it, what it claims
// without.
func parts(g Graph, s Service) []claim {
	if s.GPUs <= 0 {
		return nil
	}
	whole := claim{graph: g, service: s, class: g.Class, floor: s.floor(), wanted: s.Wanted, granted: s.Granted, held: s.Held}
	if s.Unshown <= 0 || g.Class <= 0 {
		return []claim{whole}
	}
	shown, rest := whole, whole
	shown.wanted = max(0, s.Wanted-s.Unshown)
	rest.unshown, rest.class, rest.floor, rest.wanted = true, 0, 0, s.Wanted-shown.wanted
	rest.granted = max(0, s.Granted-shown.wanted)
	rest.held = rest.granted // what ends is the other's
	shown.granted, shown.held = s.Granted-rest.granted, s.Held-rest.held
	return []claim{shown, rest}
}

// pass divides among the claims of each group.
func pass(all []claim, group func(claim) string, levels func(claim) []level) []outcome {
	out := make([]outcome, len(all))
	groups := map[string][]int{}
	for i, c := range all {
		groups[group(c)] = append(groups[group(c)], i)
	}
	for _, members := range groups {
		var budgets []arbitration.Budget
		var whose []string
		at := map[string]int{}
		asked := make([]arbitration.Claim, len(members))
		for j, i := range members {
			c := all[i]
			asked[j] = arbitration.Claim{
				Name: c.graph.Namespace + "/" + c.graph.Name + " " + c.service.Name, Priority: c.priority, GPUs: c.service.GPUs,
				Floor: min(c.floor, c.wanted), Wanted: c.wanted, Held: c.held, Ending: max(0, c.held-c.granted),
			}
			for _, l := range levels(c) {
				if _, known := at[l.key]; !known {
					at[l.key] = len(budgets)
					budgets, whose = append(budgets, arbitration.Budget{Name: l.says, GPUs: l.gpus}), append(whose, l.whose)
				}
				asked[j].Budgets = append(asked[j].Budgets, at[l.key])
			}
		}
		for j, grant := range arbitration.Divide(asked, budgets) {
			out[members[j]] = outcome{share: grant.Replicas, now: grant.Now, holders: grant.Holders}
			if grant.LimitedBy >= 0 {
				out[members[j]].budget, out[members[j]].by = whose[grant.LimitedBy], budgets[grant.LimitedBy].Name
			}
		}
	}
	return out
}
