package budget

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// has is a service of which so many run.
func has(name string, n, wanted int) Service {
	return Service{Name: name, GPUs: 1, Wanted: wanted, Granted: n, Held: n}
}

func TestGrants(t *testing.T) {
	for _, x := range []struct {
		rule    string
		budgets Budgets
		graphs  []Graph
		want    map[string]int
		says    string
	}{
		{"without a budget everything is granted", Budgets{}, []Graph{{Namespace: "lab", Name: "a", Services: []Service{has("d", 1, 9)}}}, map[string]int{"d": 9}, ""},
		{"a graph keeps its own", Budgets{}, []Graph{{Namespace: "lab", Name: "a", Budget: 4, Services: []Service{has("d", 1, 9), has("p", 1, 1)}}}, map[string]int{"d": 3, "p": 1}, "d has 3 of 9 replicas: the budget of graph a is 4 GPUs, held by lab/a p"},
		{"what ends holds its GPUs", Budgets{}, []Graph{{Namespace: "lab", Name: "a", Budget: 4, Services: []Service{{Name: "d", GPUs: 1, Wanted: 1, Granted: 1, Held: 3}, has("p", 1, 3)}}}, map[string]int{"d": 1, "p": 1}, "p has 1 of 3 replicas: GPUs are not free yet"},
		{"a namespace's is shared evenly", Budgets{Namespaces: map[string]int{"lab": 8}}, []Graph{
			{Namespace: "lab", Name: "a", Services: []Service{has("d", 1, 8)}}, {Namespace: "lab", Name: "b", Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 4}, "d has 4 of 8 replicas: the budget of namespace lab is 8 GPUs, held by lab/b d"},
		{"a priority comes first in its namespace", Budgets{Namespaces: map[string]int{"lab": 8}}, []Graph{
			{Namespace: "lab", Name: "a", Priority: 1, Services: []Service{has("d", 1, 8)}}, {Namespace: "lab", Name: "b", Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 7}, "namespace lab"},
		{"and counts for nothing elsewhere", Budgets{Cluster: 8}, []Graph{
			{Namespace: "lab", Name: "a", Priority: 99, Services: []Service{has("d", 1, 8)}}, {Namespace: "other", Name: "b", Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 4}, "d has 4 of 8 replicas: the budget of the cluster is 8 GPUs, held by other/b d"},
		{"but within its namespace it does there, too", Budgets{Cluster: 8}, []Graph{
			{Namespace: "lab", Name: "a", Priority: 9, Services: []Service{has("d", 1, 8)}}, {Namespace: "lab", Name: "b", Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 7}, "d has 7 of 8 replicas: the budget of the cluster is 8 GPUs, held by lab/b d"},
		{"of what its namespace gets", Budgets{Cluster: 9}, []Graph{
			{Namespace: "lab", Name: "a", Priority: 9, Services: []Service{has("d", 1, 9)}}, {Namespace: "lab", Name: "b", Services: []Service{has("d", 1, 9)}},
			{Namespace: "other", Name: "c", Priority: 99, Services: []Service{has("d", 1, 9)}},
		}, map[string]int{"d": 5}, "cluster"},
		{"a class comes first in all namespaces", Budgets{Cluster: 8}, []Graph{
			{Namespace: "lab", Name: "a", Class: 1000, Services: []Service{has("d", 1, 8)}}, {Namespace: "other", Name: "b", Priority: 99, Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 7}, "d has 7 of 8 replicas: the budget of the cluster is 8 GPUs, held by other/b d"},
		{"and takes nobody's floor", Budgets{Cluster: 8}, []Graph{
			{Namespace: "lab", Name: "a", Class: -1000, Services: []Service{has("d", 3, 8)}}, {Namespace: "other", Name: "b", Services: []Service{has("d", 5, 8)}},
		}, map[string]int{"d": 2}, "d has 2 of 8 replicas: the budget of the cluster is 8 GPUs, held by other/b d"},
		{"what a class brings stays in the class", Budgets{Cluster: 9}, []Graph{
			{Namespace: "lab", Name: "a", Priority: 9, Services: []Service{has("d", 1, 9)}}, {Namespace: "lab", Name: "b", Class: 1000, Services: []Service{has("d", 1, 9)}},
			{Namespace: "other", Name: "c", Priority: 99, Services: []Service{has("d", 1, 9)}},
		}, map[string]int{"d": 1}, "cluster"},
		{"a class comes before a priority in a namespace, too", Budgets{Namespaces: map[string]int{"lab": 8}}, []Graph{
			{Namespace: "lab", Name: "a", Class: 1, Services: []Service{has("d", 1, 8)}}, {Namespace: "lab", Name: "b", Priority: 1000, Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 7}, "namespace lab"},
		{"in one class priorities count", Budgets{Namespaces: map[string]int{"lab": 8}}, []Graph{
			{Namespace: "lab", Name: "a", Class: 1000, Priority: 1, Services: []Service{has("d", 1, 8)}}, {Namespace: "lab", Name: "b", Class: 1000, Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 7}, "namespace lab"},
		{"it counts for those alone that pods may have it for", Budgets{Cluster: 12}, []Graph{
			{Namespace: "lab", Name: "a", Class: 1000, Services: []Service{{Name: "d", GPUs: 1, Wanted: 12, Granted: 4, Held: 4, Unshown: 10}}},
			{Namespace: "other", Name: "b", Class: 500, Services: []Service{has("d", 8, 12)}},
		}, map[string]int{"d": 3}, "d has 3 of 12 replicas: the budget of the cluster is 12 GPUs, held by other/b d"},
		{"the others come with those who have none", Budgets{Cluster: 12}, []Graph{
			{Namespace: "lab", Name: "a", Class: 1000, Services: []Service{{Name: "d", GPUs: 1, Wanted: 12, Granted: 6, Held: 6, Unshown: 10}}},
			{Namespace: "other", Name: "b", Services: []Service{has("d", 6, 10)}},
		}, map[string]int{"d": 6}, "cluster"},
		{"a low class counts for all", Budgets{Cluster: 12}, []Graph{
			{Namespace: "lab", Name: "a", Class: -1000, Services: []Service{{Name: "d", GPUs: 1, Wanted: 12, Granted: 4, Held: 4, Unshown: 10}}},
			{Namespace: "other", Name: "b", Class: -500, Services: []Service{has("d", 8, 12)}},
		}, map[string]int{"d": 3}, "cluster"},
		{"what is not free is not given for them either", Budgets{Cluster: 12}, []Graph{
			{Namespace: "lab", Name: "a", Class: 1000, Services: []Service{{Name: "d", GPUs: 1, Wanted: 4, Granted: 1, Held: 3, Unshown: 2}}},
			{Namespace: "other", Name: "b", Services: []Service{has("d", 8, 8)}},
		}, map[string]int{"d": 2}, "d has 2 of 4 replicas: GPUs are not free yet"},
		{"what is free goes to the class that comes first", Budgets{Cluster: 8}, []Graph{
			{Namespace: "lab", Name: "a", Class: 1, Services: []Service{has("d", 3, 4)}}, {Namespace: "other", Name: "b", Services: []Service{has("d", 3, 4)}},
			{Namespace: "other", Name: "gone", Services: []Service{{Name: "d", GPUs: 1, Held: 1}}},
		}, map[string]int{"d": 4}, ""},
		{"who comes last in its namespace gives up one at a time", Budgets{Cluster: 8}, []Graph{
			{Namespace: "lab", Name: "a", Services: []Service{has("d", 7, 8)}}, {Namespace: "lab", Name: "b", Priority: 9, Services: []Service{has("d", 1, 8)}},
		}, map[string]int{"d": 6}, "cluster"},
		{"what is free goes to nobody for a priority elsewhere", Budgets{Cluster: 4}, []Graph{
			{Namespace: "lab", Name: "a", Services: []Service{has("d", 1, 2)}},
			{Namespace: "other", Name: "b", Priority: 99, Services: []Service{has("d", 1, 2)}},
			{Namespace: "other", Name: "gone", Services: []Service{{Name: "d", GPUs: 1, Held: 1}}},
		}, map[string]int{"d": 2}, ""},
		{"another namespace's budget is not ours", Budgets{Namespaces: map[string]int{"other": 1}}, []Graph{{Namespace: "lab", Name: "a", Services: []Service{has("d", 1, 9)}}}, map[string]int{"d": 9}, ""},
		{"who has too much gives up one at a time", Budgets{Cluster: 4}, []Graph{{Namespace: "lab", Name: "a", Services: []Service{has("d", 8, 8)}}}, map[string]int{"d": 7}, "cluster"},
		{"and keeps the rest while that one ends", Budgets{Cluster: 4}, []Graph{{Namespace: "lab", Name: "a", Services: []Service{{Name: "d", GPUs: 1, Wanted: 8, Granted: 7, Held: 8, Cut: true}}}}, map[string]int{"d": 7}, "cluster"},
		{"a budget below the floors takes nobody's last", Budgets{Cluster: 1}, []Graph{
			{Namespace: "lab", Name: "b", Services: []Service{has("d", 1, 1)}}, {Namespace: "lab", Name: "a", Services: []Service{has("d", 1, 1)}},
		}, map[string]int{"d": 1}, ""},
		{"nothing is started for which there is no GPU", Budgets{Cluster: 2}, []Graph{
			{Namespace: "lab", Name: "a", Services: []Service{has("d", 0, 1)}}, {Namespace: "lab", Name: "b", Services: []Service{has("d", 2, 2)}},
		}, map[string]int{"d": 0}, "d has 0 of 1 replicas: GPUs are not free yet"},
		{"who asks for less gets less at once", Budgets{Cluster: 8}, []Graph{{Namespace: "lab", Name: "a", Services: []Service{has("d", 8, 2)}}}, map[string]int{"d": 2}, ""},
		{"services without GPUs are in nobody's way", Budgets{Cluster: 1}, []Graph{{Namespace: "lab", Name: "a", Services: []Service{{Name: "f", Wanted: 5}}}}, map[string]int{}, ""},
	} {
		t.Run(x.rule, func(t *testing.T) {
			granted, limits := Grants(x.budgets, x.graphs, "lab", "a")
			if diff := cmp.Diff(x.want, granted); diff != "" {
				t.Error(diff)
			}
			said := ""
			for _, l := range limits {
				said += l.String()
			}
			if (said == "") != (x.says == "") || !strings.Contains(said, x.says) {
				t.Errorf("says %q", said)
			}
		})
	}
}

func TestALimitSaysWhoseBudgetItIs(t *testing.T) {
	own := Graph{Namespace: "lab", Name: "a", Budget: 4, Services: []Service{has("d", 1, 9)}}
	shared := Graph{Namespace: "lab", Name: "a", Services: []Service{has("d", 1, 9)}}
	for _, x := range []struct {
		rule    string
		budgets Budgets
		graphs  []Graph
		want    []string
	}{
		{"nobody's", Budgets{}, []Graph{shared}, nil},
		{"the graph's", Budgets{}, []Graph{own}, []string{"graph a"}},
		{"the namespace's", Budgets{Namespaces: map[string]int{"lab": 4}}, []Graph{shared}, []string{"namespace lab"}},
		{"the cluster's", Budgets{Cluster: 4}, []Graph{shared}, []string{"cluster"}},
		{"the first that is in the way is named alone", Budgets{Cluster: 6, Namespaces: map[string]int{"lab": 5}}, []Graph{own}, []string{"graph a"}},
		{"what is due waits for those who hold it", Budgets{Cluster: 2}, []Graph{
			{Namespace: "lab", Name: "a", Services: []Service{has("d", 0, 1)}}, {Namespace: "lab", Name: "b", Services: []Service{has("d", 2, 2)}},
		}, []string{"draining"}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			_, limits := Grants(x.budgets, x.graphs, "lab", "a")
			var got []string
			for _, l := range limits {
				got = append(got, l.Budget)
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoBudgetIsEverExceeded plays graphs whose wishes change at random, each looked at
// at a time of its own, with replicas that take a while to end: as long as no graph begins
// with more than there is, what has GPUs is never more than any budget.
func TestNoBudgetIsEverExceeded(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 1))
	for round := range 40 {
		budgets := Budgets{Cluster: 6 + chance.IntN(12), Namespaces: map[string]int{"n0": 4 + chance.IntN(6)}}
		var graphs []Graph
		for i := range 4 {
			g := Graph{Namespace: []string{"n0", "n1"}[i%2], Name: string(rune('a' + i)), Priority: chance.IntN(3), Class: chance.IntN(3) - 1}
			if chance.IntN(2) == 0 {
				g.Budget = 3 + chance.IntN(5)
			}
			for _, name := range []string{"d", "p"} {
				g.Services = append(g.Services, Service{Name: name, GPUs: 1 + chance.IntN(2)})
			}
			graphs = append(graphs, g)
		}
		ending := map[string]int{}
		for step := range 200 {
			i := chance.IntN(len(graphs))
			g := &graphs[i]
			for j := range g.Services {
				if chance.IntN(10) == 0 {
					g.Services[j].Wanted = chance.IntN(6)
				}
			}
			granted, _ := Grants(budgets, graphs, g.Namespace, g.Name)
			for j := range g.Services {
				s := &g.Services[j]
				s.Unshown = chance.IntN(1 + s.Wanted)
				key := g.Name + s.Name
				if n := granted[s.Name]; n < s.Granted {
					ending[key] += s.Granted - n
					s.Cut = true
				}
				s.Granted = granted[s.Name]
				if ending[key] > 0 && chance.IntN(4) == 0 {
					ending[key]--
					s.Cut = false
				}
				s.Held = s.Granted + ending[key]
			}
			used, inside := 0, 0
			for _, g := range graphs {
				own := 0
				for _, s := range g.Services {
					own += s.Held * s.GPUs
				}
				used += own
				if g.Namespace == "n0" {
					inside += own
				}
				if g.Budget > 0 && own > g.Budget {
					t.Fatalf("round %d, step %d: graph %s holds %d of %d", round, step, g.Name, own, g.Budget)
				}
			}
			if used > budgets.Cluster || inside > budgets.Namespaces["n0"] {
				t.Fatalf("round %d, step %d: %d of %d, %d of %d in n0", round, step, used, budgets.Cluster, inside, budgets.Namespaces["n0"])
			}
		}
	}
}

// TestPrioritiesCountWithinNamespacesAlone divides a budget of the cluster again and again,
// until nothing changes. Replicas are of one size and end at once.
func TestPrioritiesCountWithinNamespacesAlone(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 2))
		budgets := Budgets{Cluster: 4 + chance.IntN(24)}
		var graphs []Graph
		for i := range 2 + chance.IntN(5) {
			s := Service{Name: "d", GPUs: 1, Wanted: chance.IntN(9)}
			if i < 4 { // no more than there is
				s.Granted, s.Held = s.floor(), s.floor()
			}
			graphs = append(graphs, Graph{
				Namespace: string(rune('m' + chance.IntN(3))), Name: string(rune('a' + i)), Priority: chance.IntN(3) - 1, Class: chance.IntN(2), Services: []Service{s},
			})
		}
		got := settled(t, budgets, graphs)
		used, lacks := 0, false
		for i, g := range got {
			s := g.Services[0]
			used += s.Granted
			lacks = lacks || s.Granted < s.Wanted
			for j, other := range got {
				if o := other.Services[0]; i != j && peers(g) == peers(other) && g.Priority > other.Priority && s.Granted < s.Wanted && o.Granted > o.floor() {
					t.Fatalf("seed %d: %+v is short, and %+v has more than its floor", seed, g, other)
				}
			}
		}
		if lacks && used < budgets.Cluster {
			t.Fatalf("seed %d: %d of %d have GPUs, and somebody lacks some: %+v", seed, used, budgets.Cluster, got)
		}
		equal := slices.Clone(graphs)
		for i := range equal {
			equal[i].Priority = 0
		}
		if diff := cmp.Diff(perClass(settled(t, budgets, equal)), perClass(got)); diff != "" {
			t.Fatalf("seed %d: what classes of namespaces get without priorities, and with them: %s", seed, diff)
		}
		budgets.Cluster++
		for i, g := range settled(t, budgets, graphs) {
			if g.Services[0].Granted < got[i].Services[0].Granted {
				t.Fatalf("seed %d: one GPU more took from %+v", seed, got[i])
			}
		}
	}
}

// TestClassesCountInAllNamespaces: whatever annotations say, nobody is short while somebody of
// a lower class has more than its floor.
func TestClassesCountInAllNamespaces(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 3))
		budgets := Budgets{Cluster: 4 + chance.IntN(24)}
		var graphs []Graph
		for i := range 2 + chance.IntN(5) {
			s, class := Service{Name: "d", GPUs: 1, Wanted: chance.IntN(9)}, 1000*chance.IntN(3)
			if i < 4 { // no more than there is
				s.Granted, s.Held = s.floor(), s.floor()
			}
			graphs = append(graphs, Graph{
				Namespace: string(rune('m' + chance.IntN(3))), Name: string(rune('a' + i)), Priority: chance.IntN(5) - 2, Class: class, Services: []Service{s},
			})
		}
		got := settled(t, budgets, graphs)
		for _, g := range got {
			for _, other := range got {
				if s, o := g.Services[0], other.Services[0]; g.Class > other.Class && s.Granted < s.Wanted && o.Granted > o.floor() {
					t.Fatalf("seed %d: %+v is short, and %+v has more than its floor", seed, g, other)
				}
			}
		}
	}
}

// TestAPriorityLendsNobodyAClass: a graph of a high class that puts itself behind another of
// its namespace does not hand it what the class brings.
func TestAPriorityLendsNobodyAClass(t *testing.T) {
	graphs := []Graph{
		{Namespace: "evil", Name: "h", Class: 1000, Priority: -1, Services: []Service{has("d", 1, 12)}},
		{Namespace: "evil", Name: "l", Priority: 1000, Services: []Service{has("d", 1, 12)}},
		{Namespace: "good", Name: "v", Class: 500, Services: []Service{has("d", 1, 12)}},
	}
	got := map[string]int{}
	for _, g := range settled(t, Budgets{Cluster: 12}, graphs) {
		got[g.Name] = g.Services[0].Granted
	}
	if diff := cmp.Diff(map[string]int{"h": 10, "l": 1, "v": 1}, got); diff != "" {
		t.Error(diff)
	}
}

// settled are graphs after each was looked at until nothing changed. On the way no budget is
// exceeded, and nobody is given less than it has but for a budget that is named.
func settled(t *testing.T, b Budgets, graphs []Graph) []Graph {
	t.Helper()
	graphs = slices.Clone(graphs)
	for i := range graphs {
		graphs[i].Services = slices.Clone(graphs[i].Services)
	}
	for range 100 {
		changed, used := false, 0
		for i := range graphs {
			s := &graphs[i].Services[0]
			granted, limits := Grants(b, graphs, graphs[i].Namespace, graphs[i].Name)
			n := granted[s.Name]
			if n < min(s.Granted, s.Wanted) && (len(limits) == 0 || !strings.HasPrefix(limits[0].By, "the budget of")) {
				t.Fatalf("%+v is given %d: %v", graphs[i], n, limits)
			}
			changed = changed || n != s.Granted
			s.Granted, s.Held = n, n
		}
		for _, g := range graphs {
			used += g.Services[0].Held
		}
		switch {
		case used > b.Cluster:
			t.Fatalf("%d of %d: %+v", used, b.Cluster, graphs)
		case !changed:
			return graphs
		}
	}
	t.Fatalf("nothing settles: %+v", graphs)
	return nil
}

type peer struct {
	Namespace string
	Class     int
}

// peers are the graphs that priorities order.
func peers(g Graph) peer { return peer{g.Namespace, g.Class} }

func perClass(graphs []Graph) map[peer]int {
	n := map[peer]int{}
	for _, g := range graphs {
		n[peers(g)] += g.Services[0].Granted
	}
	return n
}
