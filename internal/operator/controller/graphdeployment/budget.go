package graphdeployment

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/deviceclaim"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/budget"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Ledger grants replicas out of budgets of GPUs. What it has granted counts from that
// moment on, whatever the informers show yet: two graphs that are looked at together are
// not given the same GPU. It is not needed after a restart, when everything is read anew.
type Ledger struct {
	Budgets  budget.Budgets
	Defaults graph.Defaults
	Facts    observe.Facts

	mu      sync.Mutex
	granted map[types.UID]map[string]grant
	// lacking is since when services have fewer pods than they were granted.
	lacking map[serviceOf]time.Time
	// classes are those that pods of graphs had when there were some last.
	classes map[types.UID]seenClass
}

type seenClass struct {
	value int
	at    time.Time
}

type serviceOf struct {
	graph types.UID
	name  string
}

type grant struct {
	replicas int
	cut      time.Time
}

const (
	// cutPause is how long a service keeps what it has after it was given less: what ends
	// drains first.
	cutPause = time.Minute
	// refusedAfter is how long pods of replicas that were granted may take to be there, with
	// a node or without, before they are held for refused.
	refusedAfter = 2 * time.Minute
	// classKept is how long a graph without pods has the class that they had: it may have lost
	// them for a moment, such as with a node or by a restart.
	classKept = 10 * time.Minute
	// limitedAgain is when a graph is looked at again that lacks GPUs or says so,
	// sharedAgain any other with a budget: no watch tells that somebody else asks for more.
	limitedAgain = 5 * time.Second
	sharedAgain  = 15 * time.Second
)

// budgeted is what budgets mean for one graph.
type budgeted struct {
	granted map[string]int
	again   time.Duration
}

// grant says what of the replicas that a graph is to have it may have now. Without a
// budget that it counts against it is nothing at all.
func (l *Ledger) grant(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, now time.Time) (b budgeted, limits []budget.Limit, err error) {
	if l == nil {
		return b, nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own := annotated(dgd.Annotations, v1alpha1.AnnotationGPUBudget)
	if own <= 0 && !l.Budgets.Shared(dgd.Namespace) {
		// What it has from now on nobody grants: once there is a budget again, what was
		// granted under the last one says nothing.
		delete(l.granted, dgd.UID)
		return b, nil, nil
	}
	maps.DeleteFunc(l.classes, func(_ types.UID, c seenClass) bool { return now.Sub(c.at) > classKept })
	graphs, err := l.graphs(ctx, dgd, g, now)
	if err != nil {
		return b, nil, err
	}
	b.granted, limits = budget.Grants(l.Budgets, graphs, dgd.Namespace, dgd.Name)
	if l.granted == nil {
		l.granted = map[types.UID]map[string]grant{}
	}
	told := map[string]grant{}
	for _, s := range graphs[0].Services { // those of the graph itself
		n, counts := b.granted[s.Name]
		if !counts {
			continue
		}
		if !has(g, s.Name) { // nothing is granted there, and it may come back
			delete(b.granted, s.Name)
			continue
		}
		name := s.Name
		told[name] = grant{n, l.granted[dgd.UID][name].cut}
		if n < s.Granted && slices.ContainsFunc(limits, func(x budget.Limit) bool { return x.Service == name }) {
			told[name] = grant{n, now}
		}
	}
	l.granted[dgd.UID] = told
	b.again = sharedAgain
	if len(limits) > 0 || meta.IsStatusConditionTrue(dgd.Status.Conditions, v1alpha1.ConditionScalingLimited) {
		b.again = limitedAgain // until what it says is true again, too
	}
	return b, limits, nil
}

// graphs are all that count against the same budgets, the graph itself first. One whose
// spec cannot be read, or that is gone, wants nothing, and holds what its pods have.
func (l *Ledger) graphs(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, now time.Time) ([]budget.Graph, error) {
	if !l.Budgets.Shared(dgd.Namespace) {
		pods, err := l.Facts.PodsByService(ctx, dgd.Namespace, dgd.Name)
		return []budget.Graph{l.claims(dgd, g, pods, now)}, err
	}
	namespace := dgd.Namespace
	if l.Budgets.Cluster > 0 {
		namespace = ""
	}
	others, err := l.Facts.Graphs(ctx, namespace)
	if err != nil {
		return nil, err
	}
	pods, err := l.Facts.PodsByGraph(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all := append([]*v1alpha1.DynamoGraphDeployment{dgd}, slices.DeleteFunc(others, func(o *v1alpha1.DynamoGraphDeployment) bool { return o.UID == dgd.UID })...)
	var out []budget.Graph
	for _, one := range all {
		meant := g
		if one.UID != dgd.UID {
			if meant, err = graph.FromGraphDeployment(one, l.Defaults); err != nil {
				continue // its own reconcile says so
			}
			if dormancy.Told(one.Status.Conditions) == dormancy.Dormant {
				meant = meant.Asleep()
			}
			if meant, err = l.counted(ctx, meant); err != nil {
				return nil, err
			}
		}
		key := client.ObjectKeyFromObject(one)
		out = append(out, l.claims(one, meant, pods[key], now))
		delete(pods, key)
	}
	left, err := l.left(ctx, namespace, pods)
	return append(out, left...), err
}

// counted is another graph with the GPUs that it claims by templates. Claims that are
// named are not watched: of others nobody asks for them.
func (l *Ledger) counted(ctx context.Context, g *graph.Graph) (*graph.Graph, error) {
	refs := slices.DeleteFunc(deviceclaim.Refs(g), func(r graph.Ref) bool { return r.Kind != deviceclaim.KindTemplate })
	if len(refs) == 0 {
		return g, nil
	}
	have, err := l.Facts.Capabilities(ctx)
	if err != nil || !have.All(snapshot.APIDevices) {
		return g, err
	}
	found, err := l.Facts.DeviceRequests(ctx, g.Namespace, refs)
	if err != nil {
		return nil, err
	}
	counted, _ := deviceclaim.Count(g, found) // what cannot be counted is not
	return counted, nil
}

// left are graphs of which pods alone are left, with as many GPUs as those have.
func (l *Ledger) left(ctx context.Context, namespace string, pods map[types.NamespacedName]map[string]observe.PodCount) ([]budget.Graph, error) {
	var out []budget.Graph
	for key, services := range pods {
		g := budget.Graph{Namespace: key.Namespace, Name: key.Name, Services: unwanted(services)}
		if len(g.Services) > 0 {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	lone, err := l.Facts.Lone(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(g budget.Graph) bool { return lone[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}] })
	slices.SortFunc(out, func(a, b budget.Graph) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// unwanted are services of which pods alone are left, with as many GPUs as those have.
func unwanted(pods map[string]observe.PodCount) []budget.Service {
	var all []budget.Service
	for _, service := range slices.Sorted(maps.Keys(pods)) {
		if n := pods[service].GPUs; n > 0 {
			all = append(all, budget.Service{Name: service, GPUs: 1, Held: n})
		}
	}
	return all
}

func has(g *graph.Graph, service string) bool {
	return slices.ContainsFunc(g.Components, func(c graph.Component) bool { return c.Name == service })
}

// claims are what a graph wants and holds. What it does not have any more may stay for a
// generation that serves with it.
func (l *Ledger) claims(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, pods map[string]observe.PodCount, now time.Time) budget.Graph {
	out := budget.Graph{
		Namespace: dgd.Namespace, Name: dgd.Name,
		Budget: annotated(dgd.Annotations, v1alpha1.AnnotationGPUBudget),
		Class:  l.class(dgd.UID, g, pods, now), Priority: annotated(dgd.Annotations, v1alpha1.AnnotationScalingPriority),
	}
	for _, c := range g.Components {
		nodes := int(max(1, c.Nodes))
		s := budget.Service{Name: c.Name, GPUs: c.Resources.GPUs * nodes, Wanted: int(c.Replicas)}
		if dgd.DeletionTimestamp != nil {
			s.Wanted = 0
		}
		live, ending := up(pods[c.Name].Live, nodes), up(pods[c.Name].Ending, nodes)
		told, known := l.granted[dgd.UID][c.Name]
		if !known {
			told.replicas = max(int(dgd.Status.Services[c.Name].Replicas), live)
		}
		s.Granted, s.Cut = told.replicas, now.Sub(told.cut) < cutPause
		s.Held = max(s.Granted, live) + ending
		s.Unshown = l.unshown(serviceOf{dgd.UID, c.Name}, s, live+ending, now)
		out.Services = append(out.Services, s)
	}
	left := maps.Clone(pods)
	maps.DeleteFunc(left, func(service string, _ observe.PodCount) bool { return has(g, service) })
	out.Services = append(out.Services, unwanted(left)...)
	return out
}

// unshown are the replicas that a class does not count for. While pods come as replicas are
// granted it counts for all. Where they do not, as where a quota refuses them, it counts for those
// that there are and for the next, which shows when they are admitted again.
func (l *Ledger) unshown(of serviceOf, s budget.Service, pods int, now time.Time) int {
	if pods >= s.Granted {
		delete(l.lacking, of)
		return 0
	}
	since, known := l.lacking[of]
	if !known {
		if l.lacking == nil {
			l.lacking = map[serviceOf]time.Time{}
		}
		since, l.lacking[of] = now, now
	}
	if now.Sub(since) < refusedAfter {
		return 0
	}
	return max(0, s.Wanted-pods-1)
}

// class is that of a graph's pods, or the one that they had a while ago; 0 where neither is
// known.
func (l *Ledger) class(of types.UID, g *graph.Graph, pods map[string]observe.PodCount, now time.Time) int {
	value, known := lowest(g, pods)
	if !known {
		return l.classes[of].value
	}
	if l.classes == nil {
		l.classes = map[types.UID]seenClass{}
	}
	l.classes[of] = seenClass{value, now}
	return value
}

// lowest is the lowest priority of the pods of services with GPUs, where there are some. It is
// that of pods, and not of what a graph asks for: only they show that its namespace may use a
// PriorityClass.
func lowest(g *graph.Graph, pods map[string]observe.PodCount) (value int, known bool) {
	for _, c := range g.Components {
		if n := pods[c.Name]; c.Resources.GPUs > 0 && n.Live > 0 && (!known || n.Priority < value) {
			value, known = n.Priority, true
		}
	}
	return value, known
}

// up is how many groups of nodes so many pods are of.
func up(pods, nodes int) int { return (pods + nodes - 1) / nodes }

// annotated is a number that a graph says of itself; one that is none has no effect, which
// a warning tells.
func annotated(annotations map[string]string, key string) int {
	n, err := strconv.Atoi(annotations[key])
	if err != nil {
		return 0
	}
	return n
}

// limited is what is limited, in one line for a condition.
func limited(limits []budget.Limit) string {
	var all []string
	for _, l := range limits {
		all = append(all, l.String())
	}
	return strings.Join(all, "; ")
}

// limitedBy is whose budgets limit, by service.
func limitedBy(limits []budget.Limit) map[string]string {
	all := map[string]string{}
	for _, l := range limits {
		all[l.Service] = l.Budget
	}
	return all
}
