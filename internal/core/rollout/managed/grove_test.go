package managed_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// groveCluster plays the same where Grove runs the graph: it stores PodCliqueSets and
// makes cliques from them, whose replicas are set there. Like Grove it takes no set that
// gets or loses cliques, or that is made with none of something.
type groveCluster struct {
	*cluster
	cliques []*grovev1alpha1.PodClique
	groups  []*grovev1alpha1.PodCliqueScalingGroup
	// off has the operator not know of generations.
	off bool
	// surge is how many replicas of a worker may exist beside those that are desired.
	surge int
	// tolerates are surge and unavailable of both workers; by default those of 25 %.
	tolerates [2]string
	// pool has both workers do all of the work.
	pool bool
	// random is an adversary: it has pods come up and go in whatever order. Without one
	// they do one after the other.
	random *rand.Rand
}

func startOnGrove(t *testing.T, replicas, nodes int32, tune ...func(*groveCluster)) *groveCluster {
	t.Helper()
	c := &groveCluster{cluster: &cluster{T: t, now: time.Unix(10000, 0), limit: 10, floor: int(replicas) - int(replicas)/4}, surge: int(replicas+3) / 4}
	for _, tune := range tune {
		tune(c)
	}
	c.dgd = &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat", UID: "u"}}
	c.dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{}
	for _, kind := range []v1alpha1.ComponentType{"frontend", "prefill", "decode"} {
		n := replicas
		switch {
		case kind == "frontend":
			n = 1
		case kind == "prefill" && c.parked:
			n = 0
		}
		c.dgd.Spec.Services[string(kind)] = &v1alpha1.SharedSpec{
			ComponentType: kind, Replicas: new(n),
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "example.com/engine:1.0.0"}},
		}
		if kind != "frontend" && c.tolerates[0] != "" {
			c.dgd.Spec.Services[string(kind)].Annotations = map[string]string{
				v1alpha1.AnnotationMaxSurge: c.tolerates[0], v1alpha1.AnnotationMaxUnavailable: c.tolerates[1],
			}
		}
	}
	if c.pool {
		c.dgd.Spec.Services["prefill"].ComponentType, c.dgd.Spec.Services["decode"].ComponentType = "worker", "worker"
	}
	if nodes > 1 {
		c.dgd.Spec.Services["decode"].Multinode = &v1alpha1.Multinode{NodeCount: nodes}
	}
	c.until("the graph to run", func(d managed.Decision) bool {
		return len(d.Rolling) == 0 && len(c.owned) == 1 && c.serving() == int(replicas) && revision.Stable(c.revisions) != nil
	})
	return c
}

func (c *groveCluster) image(image string) {
	for name, s := range c.dgd.Spec.Services {
		if name != "frontend" {
			s.ExtraPodSpec.MainContainer.Image = image
		}
	}
}

// template is what of a pod counts here.
func template(c graph.Component, _ engine.Group) (corev1.PodTemplateSpec, error) {
	labels := map[string]string{v1alpha1.LabelComponent: c.Name}
	if c.Generation != "" {
		labels[v1alpha1.LabelGeneration] = c.Generation
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: c.Main.Image}}}}, nil
}

func (c *groveCluster) seen() snapshot.Snapshot {
	s := snapshot.Snapshot{Owned: c.owned, Taken: c.now}
	for _, clique := range c.cliques {
		s.Beneath = append(s.Beneath, clique)
	}
	for _, group := range c.groups {
		s.Beneath = append(s.Beneath, group)
	}
	return s
}

func (c *groveCluster) reconcile() managed.Decision {
	c.Helper()
	d := defaults
	d.Running = graph.ReadRunning(c.dgd, c.owned)
	g, err := graph.FromGraphDeployment(c.dgd, d)
	if err != nil {
		c.Fatal(err)
	}
	b, s := grove.Builder{Graph: c.dgd, Defaults: d, Generations: !c.off}, c.seen()
	p, _ := policy.Parse(c.dgd.Annotations)
	in := managed.Input{
		Owner: c.dgd, Graph: g, Policy: p, Revisions: c.revisions, Whole: b.Whole(),
		Sight:    world.Sight{Pods: c.pods, Now: c.now, NoSpareAfter: 30 * time.Second},
		Ready:    func(*graph.Graph) bool { return c.serving() > 0 },
		Settings: managed.Settings{ProgressDeadline: 10 * time.Minute, HistoryLimit: c.limit},
	}
	if !c.off {
		if why := b.Unfit(g); why != "" {
			c.Fatal(why)
		}
		in.Cells = world.Cells(g, b.Members(g, s), world.Rules{
			Isolated: p.Isolation != policy.IsolationNone, Recorded: generation.ID(g.Generation),
			Named: func(service, id string, first bool) graph.Membership { return b.Named(g, service, id, first) },
		})
	}
	decided := managed.Next(in)
	c.dgd.Status = status.Graph(c.dgd, decided.Graph, b, s, rollout.Step{}, decided.State, nil, metav1.NewTime(c.now))
	c.write(b, decided)
	return decided
}

func (c *groveCluster) write(b grove.Builder, d managed.Decision) {
	c.Helper()
	if c.dgd.Annotations == nil {
		c.dgd.Annotations = map[string]string{}
	}
	c.dgd.Annotations[v1alpha1.AnnotationGeneration] = d.Graph.Generation
	shown := d.Shown(d.Graph)
	objects, err := b.Build(shown, template)
	if err != nil {
		c.Fatal(err)
	}
	var desired []graph.Desired
	for _, o := range objects {
		desired = append(desired, graph.Desired{Object: o})
	}
	desired = b.InOrder(d.Graph, b.Carry(d.Graph, desired, d.Carried(), c.seen()), c.seen())
	wrote := 0
	for _, o := range d.Pruned(c.owned) {
		if !slices.ContainsFunc(desired, func(w graph.Desired) bool { return w.GetName() == o.GetName() }) {
			c.owned = slices.DeleteFunc(c.owned, func(x graph.Object) bool { return x == o })
			wrote++
		}
	}
	for _, w := range desired {
		wrote += c.store(w.Object.(*grovev1alpha1.PodCliqueSet))
	}
	var given []graph.Component
	for _, o := range shown.Components {
		if !slices.Contains(d.Carried().Left, o.Name) {
			given = append(given, o)
		}
	}
	for _, r := range slices.Concat(d.Scale, b.Rescale(given, c.seen())) {
		switch o := r.Object.(type) {
		case *grovev1alpha1.PodClique:
			o.Spec.Replicas, o.Generation = r.Replicas, o.Generation+1
		case *grovev1alpha1.PodCliqueScalingGroup:
			o.Spec.Replicas, o.Generation = r.Replicas, o.Generation+1
		default:
			c.Errorf("%T is scaled", o)
		}
		wrote++
	}
	for _, r := range d.Record {
		wrote++
		c.revisions = slices.DeleteFunc(slices.Clone(c.revisions), func(o *appsv1.ControllerRevision) bool { return o.Name == r.Revision.Name })
		c.revisions = append(c.revisions, r.Revision)
	}
	if wrote > 3 && len(d.Rolling) > 0 {
		c.Errorf("%d writes in one step", wrote)
	}
	c.writes += wrote
}

// store is what Grove's webhook and the API server do with a set.
func (c *groveCluster) store(set *grovev1alpha1.PodCliqueSet) (wrote int) {
	c.Helper()
	set.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: c.dgd.Name}}
	names := func(s *grovev1alpha1.PodCliqueSet) (all []string) {
		for _, t := range s.Spec.Template.Cliques {
			all = append(all, t.Name)
			if t.Spec.Replicas < 1 {
				c.Errorf("PodCliqueSet %s has no replica of %s", s.Name, t.Name)
			}
		}
		for _, group := range s.Spec.Template.PodCliqueScalingGroupConfigs {
			if *group.Replicas < 1 {
				c.Errorf("PodCliqueSet %s has no replica of group %s", s.Name, group.Name)
			}
		}
		return all
	}
	if len(set.Name)+len("frontend") > 45 {
		c.Errorf("PodCliqueSet %s has too long a name", set.Name)
	}
	at := slices.IndexFunc(c.owned, func(o graph.Object) bool { return o.GetName() == set.Name })
	if at < 0 {
		names(set)
		c.owned = append(c.owned, set)
		return 1
	}
	live := c.owned[at].(*grovev1alpha1.PodCliqueSet)
	if !slices.Equal(names(live), names(set)) {
		c.Errorf("the cliques of PodCliqueSet %s become %v, from %v", set.Name, names(set), names(live))
	}
	for i, t := range set.Spec.Template.Cliques {
		if was := live.Spec.Template.Cliques[i].Spec.PodSpec.Containers[0].Image; was != t.Spec.PodSpec.Containers[0].Image {
			c.Errorf("clique %s of PodCliqueSet %s is replaced in place, from %s", t.Name, set.Name, was)
		}
	}
	if fmt.Sprint(live.Spec.Template.Cliques[0].Spec.Replicas, live.Annotations, len(live.Spec.Template.Cliques)) != fmt.Sprint(set.Spec.Template.Cliques[0].Spec.Replicas, set.Annotations, len(set.Spec.Template.Cliques)) {
		wrote = 1
	}
	c.owned[at] = set
	return wrote
}

// life is that of Grove, and of pods.
func (c *groveCluster) life() {
	owned := map[string]*grovev1alpha1.PodCliqueSet{}
	for _, o := range c.owned {
		set := o.(*grovev1alpha1.PodCliqueSet)
		owned[set.Name] = set
		c.make(set)
	}
	c.cliques = slices.DeleteFunc(c.cliques, func(o *grovev1alpha1.PodClique) bool { return owned[o.Labels[common.LabelPartOfKey]] == nil })
	c.groups = slices.DeleteFunc(c.groups, func(o *grovev1alpha1.PodCliqueScalingGroup) bool {
		return owned[o.Labels[common.LabelPartOfKey]] == nil
	})
	wanted := map[string]bool{}
	for _, clique := range c.cliques {
		for i := range clique.Spec.Replicas {
			c.pod(wanted, fmt.Sprintf("%s-%d", clique.Name, i), clique.Name, clique.Labels, clique.Spec)
		}
	}
	for _, group := range c.groups {
		for i := range group.Spec.Replicas {
			for _, t := range owned[group.Labels[common.LabelPartOfKey]].Spec.Template.Cliques {
				if !slices.Contains(group.Spec.CliqueNames, t.Name) {
					continue
				}
				labels := maps.Clone(t.Labels)
				labels[common.LabelPodCliqueScalingGroup], labels[common.LabelPodCliqueScalingGroupReplicaIndex] = group.Name, fmt.Sprint(i)
				clique := fmt.Sprintf("%s-%d-%s", group.Name, i, t.Name)
				c.pod(wanted, clique+"-0", clique, labels, t.Spec)
			}
		}
	}
	for i := range c.pods {
		if p := &c.pods[i]; !wanted[p.Name] && p.DeletionTimestamp == nil {
			p.DeletionTimestamp = new(metav1.NewTime(c.now))
		}
	}
	if c.random == nil {
		c.beat()
		return
	}
	c.now = c.now.Add(time.Duration(c.random.IntN(12)) * time.Second)
	for i := len(c.pods) - 1; i >= 0; i-- {
		switch p := &c.pods[i]; {
		case c.random.IntN(4) > 0:
		case p.DeletionTimestamp != nil:
			c.pods = slices.Delete(slices.Clone(c.pods), i, i+1)
		case p.Status.Conditions == nil:
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.now)}}
		}
	}
}

// held are the replicas of a worker that hold GPUs: pods that start and leave do too.
func (c *groveCluster) held(service string) int {
	all := map[string]bool{}
	for _, p := range c.pods {
		key := p.Name
		if group := p.Labels[common.LabelPodCliqueScalingGroup]; group != "" {
			key = group + "/" + p.Labels[common.LabelPodCliqueScalingGroupReplicaIndex]
		}
		if p.Labels[v1alpha1.LabelComponent] == service {
			all[key] = true
		}
	}
	return len(all)
}

// make is what Grove makes from a set. Numbers of replicas are read once.
func (c *groveCluster) make(set *grovev1alpha1.PodCliqueSet) {
	labels := map[string]string{common.LabelManagedByKey: common.LabelManagedByValue, common.LabelPartOfKey: set.Name}
	grouped := map[string]bool{}
	for _, config := range set.Spec.Template.PodCliqueScalingGroupConfigs {
		for _, name := range config.CliqueNames {
			grouped[name] = true
		}
		name := set.Name + "-0-" + config.Name
		if !slices.ContainsFunc(c.groups, func(o *grovev1alpha1.PodCliqueScalingGroup) bool { return o.Name == name }) {
			c.groups = append(c.groups, &grovev1alpha1.PodCliqueScalingGroup{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Generation: 1}, Spec: grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: *config.Replicas, CliqueNames: config.CliqueNames},
			})
		}
	}
	for _, t := range set.Spec.Template.Cliques {
		name := set.Name + "-0-" + t.Name
		if !grouped[t.Name] && !slices.ContainsFunc(c.cliques, func(o *grovev1alpha1.PodClique) bool { return o.Name == name }) {
			all := maps.Clone(labels)
			maps.Copy(all, t.Labels)
			c.cliques = append(c.cliques, &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all, Generation: 1}, Spec: *t.Spec.DeepCopy()})
		}
	}
}

// pod sees to it that there is one. A name is free when the pod before is gone.
func (c *groveCluster) pod(wanted map[string]bool, name, clique string, labels map[string]string, spec grovev1alpha1.PodCliqueSpec) {
	wanted[name] = true
	if slices.ContainsFunc(c.pods, func(p corev1.Pod) bool { return p.Name == name }) {
		return
	}
	c.next++
	all := maps.Clone(labels)
	all[common.LabelPodClique] = clique
	c.pods = append(c.pods, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(c.next)), Labels: all, CreationTimestamp: metav1.NewTime(c.now)},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: spec.PodSpec.Containers},
	})
}

// serving counts groups of nodes by their leaders: pods of one are made and end together.
func (c *groveCluster) serving() int {
	one := &cluster{parked: c.parked}
	for _, p := range c.pods {
		follower := strings.HasSuffix(p.Labels[common.LabelPodClique], "-wkr")
		lacks := p.Labels[common.LabelPodCliqueScalingGroup] != "" && slices.ContainsFunc(c.pods, func(o corev1.Pod) bool {
			return o.Labels[common.LabelPodCliqueScalingGroup] == p.Labels[common.LabelPodCliqueScalingGroup] &&
				o.Labels[common.LabelPodCliqueScalingGroupReplicaIndex] == p.Labels[common.LabelPodCliqueScalingGroupReplicaIndex] && (o.DeletionTimestamp != nil || len(o.Status.Conditions) == 0)
		})
		if !follower && !lacks {
			one.pods = append(one.pods, p)
		}
	}
	return one.serving()
}

func (c *groveCluster) until(what string, done func(managed.Decision) bool) {
	c.Helper()
	ran := c.serving() >= c.floor
	for range 600 {
		if done(c.reconcile()) {
			return
		}
		c.life()
		if n := c.serving(); ran && n < c.floor {
			c.Fatalf("waiting for %s: %d pairs serve, and %d have to: %+v", what, n, c.floor, c.dgd.Status.Rollout)
		}
		for service, s := range c.dgd.Spec.Services {
			if n := c.held(service); ran && service != "frontend" && n > int(*s.Replicas)+c.surge {
				c.Fatalf("waiting for %s: %d replicas of %s exist, desired %d and surge %d: %+v", what, n, service, *s.Replicas, c.surge, c.dgd.Status.Rollout)
			}
		}
	}
	c.Fatalf("no end of waiting for %s: %+v", what, c.dgd.Status.Rollout)
}

func (c *groveCluster) quiet() {
	c.Helper()
	for range 5 {
		c.reconcile()
	}
	c.writes = 0
	for range 20 {
		c.life()
		c.reconcile()
	}
	if c.writes > 0 {
		c.Errorf("%d writes while nothing happens", c.writes)
	}
}

// sets are the names of those that there are.
func (c *groveCluster) sets() string {
	var names []string
	for _, o := range c.owned {
		names = append(names, o.GetName())
	}
	return strings.Join(names, " ")
}

func (c *groveCluster) rolls(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 2 }

func TestOnGroveAGenerationIsAPodCliqueSet(t *testing.T) {
	for name, of := range map[string]struct{ replicas, nodes int32 }{"1": {1, 1}, "2": {2, 1}, "4": {4, 1}, "2, decode on 2 nodes": {2, 2}} {
		t.Run(name, func(t *testing.T) {
			replicas, nodes := of.replicas, of.nodes
			c := startOnGrove(t, replicas, nodes)
			c.quiet()
			frontends := c.uids("")
			first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			ids := []string{first}
			// The third is what the first was: that is over, and a generation of its own again.
			for _, tag := range []string{"1.1.0", "1.2.0", "1.0.0"} {
				c.image("example.com/engine:" + tag)
				c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) > 1 })
				c.until("the rollout to be completed", settled)
				c.quiet()
				now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
				if want := "chat chat-" + now; c.sets() != want {
					t.Errorf("sets %s, want %s", c.sets(), want)
				}
				for _, p := range c.pods {
					if of := p.Labels[v1alpha1.LabelGeneration]; of != now && of != "" || of == now && !strings.HasSuffix(p.Spec.Containers[0].Image, tag) {
						t.Errorf("pod %s of generation %s runs %s", p.Name, of, p.Spec.Containers[0].Image)
					}
				}
				for name, role := range c.dgd.Status.Rollout.Roles {
					if int(role.Lowest) < c.floor {
						t.Errorf("the certificate of %s says %d, under its floor of %d", name, role.Lowest, c.floor)
					}
				}
				if len(c.uids(now)) != int(replicas+replicas*nodes) || c.dgd.Status.Rollout.Phase != "Completed" {
					t.Errorf("%d pods of generation %s: %+v", len(c.uids(now)), now, c.dgd.Status.Rollout)
				}
				ids = append(ids, now)
			}
			if !slices.Equal(frontends, c.uids("")) {
				t.Errorf("frontends %v were replaced by %v", frontends, c.uids(""))
			}
			if ids[1] == ids[0] || ids[2] == ids[1] || ids[3] == ids[2] {
				t.Errorf("generations %v", ids)
			}
			// An operator that does not know of generations leaves what runs.
			c.off = true
			workers := c.uids(ids[3])
			c.until("another look", func(managed.Decision) bool { return true })
			c.life()
			c.off = false
			c.quiet()
			if !slices.Equal(workers, c.uids(ids[3])) || c.sets() != "chat chat-"+ids[3] {
				t.Errorf("sets %s, pods %v, were %v", c.sets(), c.uids(ids[3]), workers)
			}
		})
	}
}

// TestOnGroveAWorkerWithoutReplicasIsRolledOut: Grove makes one of it with each set, which
// goes at once and is waited for by nobody.
func TestOnGroveAWorkerWithoutReplicasIsRolledOut(t *testing.T) {
	for name, of := range map[string]struct {
		nodes int32
		pool  bool
	}{"prefill": {nodes: 1}, "prefill, decode on 2 nodes": {nodes: 2}, "one of two that do all of the work": {1, true}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				c := startOnGrove(t, 2, of.nodes, func(c *groveCluster) {
					c.parked, c.pool = true, of.pool
					c.random = rand.New(rand.NewPCG(seed, 1))
				})
				alone := func(managed.Decision) bool { return c.held("prefill") == 0 }
				c.until("only decode to be left", alone)
				c.now = c.now.Add(world.Settled) // pods that were ready for less do not count
				completed := func(d managed.Decision) bool {
					for _, g := range c.dgd.Status.Rollout.Generations {
						if n := g.Roles["prefill"].Replicas; n > *c.dgd.Spec.Services["prefill"].Replicas {
							t.Errorf("seed %d: generation %s is to have %d of prefill", seed, g.ID, n)
						}
					}
					return settled(d) && c.serving() == 2 && c.dgd.Status.Rollout.Phase == "Completed"
				}
				for _, tag := range []string{"1.1.0", "1.2.0"} {
					c.image("example.com/engine:" + tag)
					c.until("the rollout to begin", c.rolls)
					c.until("the rollout to be completed", completed)
					c.until("only decode to be left", alone)
				}
				// So it does with a set that is not wanted any more.
				c.image("example.com/engine:2.0.0")
				for range c.random.IntN(6) {
					c.until("another look", func(managed.Decision) bool { return true })
					c.life()
				}
				c.image("example.com/engine:1.2.0")
				c.until("the way back", func(d managed.Decision) bool { return settled(d) && c.serving() == 2 && alone(d) })
				if !of.pool {
					continue
				}
				// It is scaled with a change: what serves without it does so until that is done.
				c.image("example.com/engine:1.3.0")
				c.dgd.Spec.Services["prefill"].Replicas = new(int32(2))
				c.until("the rollout to begin", c.rolls)
				c.until("the rollout to be completed", completed)
				c.until("prefill to come up", func(managed.Decision) bool { return c.held("prefill") == 2 })
			}
		})
	}
}

// TestOnGroveNoMoreExistThanDesiredAndSurge, and no less serves than the floor, in whatever
// order pods come up and go. A set is made with one of everything, so where there is no
// surge the generation before has to make room for that first.
func TestOnGroveNoMoreExistThanDesiredAndSurge(t *testing.T) {
	for name, of := range map[string]struct {
		replicas, nodes    int32
		surge, unavailable string
		// what that comes to
		more, floor int
	}{
		"no surge, 2":                   {2, 1, "0", "1", 0, 1},
		"no surge, 4":                   {4, 1, "0", "1", 0, 3},
		"no surge, 4, half may be gone": {4, 1, "0", "50%", 0, 2},
		"no surge, groups of nodes":     {3, 2, "0", "1", 0, 2},
		"surge":                         {2, 1, "1", "0", 1, 2},
		"both":                          {4, 1, "1", "1", 1, 3},
		// No replica less would serve and none more may exist: that leads nowhere, and
		// means one more.
		"neither is a surge of one":         {1, 1, "0", "0", 1, 1},
		"neither is a surge of one, of two": {2, 1, "0", "0", 1, 2},
		// All may be missing: no pair is promised.
		"no surge, 1": {1, 1, "0", "1", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				c := startOnGrove(t, of.replicas, of.nodes, func(c *groveCluster) {
					c.tolerates, c.surge, c.floor = [2]string{of.surge, of.unavailable}, of.more, of.floor
					c.random = rand.New(rand.NewPCG(seed, 1))
				})
				c.now = c.now.Add(world.Settled) // pods that were ready for less do not count
				first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
				for _, tag := range []string{"1.1.0", "1.2.0"} {
					c.image("example.com/engine:" + tag)
					c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 })
					c.until("the rollout to be completed", settled)
				}
				// A change of mind at any time is another rollout.
				c.image("example.com/engine:2.0.0")
				for range c.random.IntN(30) {
					c.until("another look", func(managed.Decision) bool { return true })
					c.life()
				}
				c.image("example.com/engine:1.3.0")
				c.until("the rollout to be completed", func(d managed.Decision) bool {
					return len(d.Rolling) == 0 && c.serving() == int(of.replicas)
				})
				if now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]; now == first || c.dgd.Status.Rollout.Phase != "Completed" {
					t.Errorf("seed %d: generation %s, %+v", seed, now, c.dgd.Status.Rollout)
				}
			}
		})
	}
}

func TestOnGroveARevertHalfWayKeepsThePodsThatStillRan(t *testing.T) {
	for name, before := range map[string][]string{"to the graph's own set": nil, "to a later one": {"1.1.0"}} {
		t.Run(name, func(t *testing.T) {
			c := startOnGrove(t, 4, 1)
			tag := "1.0.0"
			for _, tag = range before {
				c.image("example.com/engine:" + tag)
				c.until("the rollout to begin", c.rolls)
				c.until("the rollout to be completed", settled)
			}
			stable, sets := c.dgd.Annotations[v1alpha1.AnnotationGeneration], c.sets()
			c.image("example.com/engine:2.0.0")
			c.until("something of the old to have gone", func(managed.Decision) bool {
				return c.sets() != sets && c.dgd.Status.Rollout.Phase == "Shifting"
			})
			c.life()
			old := c.uids(stable)
			c.image("example.com/engine:" + tag)
			c.until("the way back", settled)
			for _, uid := range old {
				if !slices.Contains(c.uids(stable), uid) {
					t.Errorf("pod %s of the stable generation was replaced", uid)
				}
			}
			c.quiet()
			if now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]; now != stable || c.sets() != sets || len(c.uids(stable)) != 8 {
				t.Errorf("generation %s, was %s, in sets %s, were %s, with %d pods", now, stable, c.sets(), sets, len(c.uids(stable)))
			}
		})
	}
}

func TestOnGroveACandidateThatNeverComesUpIsAborted(t *testing.T) {
	c := startOnGrove(t, 2, 1)
	stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	first := c.uids(stable)
	c.broken = "example.com/engine:1.1.0"
	c.image(c.broken)
	c.until("the candidate to be aborted", func(managed.Decision) bool {
		return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Aborted"
	})
	c.quiet()
	if now := c.uids(stable); !slices.Equal(first, now) || c.sets() != "chat" {
		t.Errorf("pods %v, were %v, in sets %s", now, first, c.sets())
	}
	// Neither what is changed in place nor another spec brings it back.
	c.broken = ""
	c.image("example.com/engine:1.2.0")
	c.until("the rollout to begin", c.rolls)
	c.until("the rollout to be completed", settled)
	c.quiet()
}
