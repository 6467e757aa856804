// Package budget says how many replicas the services of a graph may have, whoever asked
// for them: an autoscaler, a planner or a person. Budgets are GPUs of a graph, of a
// namespace and of all; what starts and what ends counts. It divides by package
// arbitration, and starts and ends nothing.
package budget

import (
	"cmp"
	"fmt"
	"math"
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
	// Priority orders graphs of one namespace, and Class those of several: it is the value of
	// the PriorityClass that their pods have.
	Priority, Class int
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
		if c.graph.Namespace != namespace || c.graph.Name != name {
			continue
		}
		n := settle(c.service, result[i].now)
		granted[c.service.Name] = n
		if n < c.service.Wanted {
			by := result[i]
			if inside[i].by != "" {
				by = inside[i]
			}
			if by.by == "" {
				by.budget, by.by = "draining", "GPUs are not free yet"
			}
			limits = append(limits, Limit{c.service.Name, c.service.Wanted, n, by.budget, by.by, by.holders})
		}
	}
	return granted, limits
}

// across divides what all namespaces share. Within a namespace priorities count; across
// namespaces nobody can claim one: an annotation is anybody's to write, while who may use a
// PriorityClass is said by quotas. So what each namespace gets is found by classes, and divided
// in it by priorities. What sizes leave over there goes to whom it fits.
func across(all []claim, shared level) []outcome {
	one, only := func(claim) string { return "" }, func(claim) []level { return []level{shared} }
	classed, rank := slices.Clone(all), ranks(all)
	for i := range classed {
		classed[i].priority = classed[i].graph.Class
	}
	gets := map[string]int{}
	for i, o := range pass(classed, one, only) {
		gets[namespaceOf(all[i])] += o.share * all[i].service.GPUs
	}
	divided := pass(all, namespaceOf, func(c claim) []level {
		return []level{{shared.whose, shared.says, namespaceOf(c), gets[namespaceOf(c)]}}
	})
	for i := range classed {
		classed[i].floor, classed[i].priority = divided[i].share, rank[i]
	}
	return pass(classed, one, only)
}

// ranks are priorities that mean the same in all namespaces: by class, and in one class by
// place in the namespace. There the order stays that of its priorities: who comes first has the
// best class of those behind it.
func ranks(all []claim) []int {
	type rank struct{ class, place int }
	own, members := make([]rank, len(all)), map[string][]int{}
	for i, c := range all {
		members[namespaceOf(c)] = append(members[namespaceOf(c)], i)
	}
	for _, of := range members {
		slices.SortFunc(of, func(a, b int) int { return cmp.Compare(all[a].priority, all[b].priority) })
		best, place := math.MinInt, 0
		for from, to := 0, 0; from < len(of); from, place = to, place+1 {
			for to < len(of) && all[of[to]].priority == all[of[from]].priority {
				best = max(best, all[of[to]].graph.Class)
				to++
			}
			for _, i := range of[from:to] {
				own[i] = rank{best, place}
			}
		}
		for _, i := range of {
			own[i].place -= place // so that the first are equal, whoever is behind them
		}
	}
	compare := func(a, b rank) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.place, b.place)) }
	sorted := slices.Compact(slices.SortedFunc(slices.Values(own), compare))
	out := make([]int, len(all))
	for i := range own {
		out[i], _ = slices.BinarySearchFunc(sorted, own[i], compare)
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

type claim struct {
	graph                   Graph
	service                 Service
	floor, wanted, priority int
}

func namespaceOf(c claim) string { return c.graph.Namespace }

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

func claims(graphs []Graph) []claim {
	var all []claim
	for _, g := range graphs {
		for _, s := range g.Services {
			if s.GPUs > 0 {
				all = append(all, claim{g, s, s.floor(), s.Wanted, g.Priority})
			}
		}
	}
	return all
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
				Floor: min(c.floor, c.wanted), Wanted: c.wanted, Held: c.service.Held, Ending: max(0, c.service.Held-c.service.Granted),
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
