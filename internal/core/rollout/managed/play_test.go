package managed_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/pairing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
)

// cluster plays everything around the decisions about one graph: it stores components
// and revisions, makes and ends pods, and counts from outside what serves.
type cluster struct {
	*testing.T
	dgd       *v1alpha1.DynamoGraphDeployment
	owned     []graph.Object
	revisions []*appsv1.ControllerRevision
	pods      []corev1.Pod
	now       time.Time
	next      int
	writes    int
	// broken is an image whose pods never become ready.
	broken string
	floor  int
	// limit is how many revisions are kept.
	limit int
	// requests are what was seen of those of candidates.
	requests map[string]analysis.Series
	// crashes are those of pods that have served.
	crashes []world.Crash
	// slow is a graph of which it takes long to be seen that it is ready.
	slow bool
	// defaults are those that graphs are read by.
	defaults graph.Defaults
	// parked says that decode serves without prefill, of which none is desired.
	parked bool
	// gpus is how many pods have a node at most; 0 is any number.
	gpus int
	// dies is what is written last before the operator ends, once.
	dies string
	// attention is since when the rollout is looked at.
	attention world.Attention
	// refused is a generation that frontends send no requests; none if it is empty.
	refused string
	// loading is how pods of later images start, and lingers how long any take to end.
	loading loading
	lingers time.Duration
}

var defaults = graph.Defaults{Discovery: graph.DiscoveryKubernetes, Contract: graph.ContractRules{Forced: graph.ContractV1}}

func start(t *testing.T, replicas int32) *cluster {
	t.Helper()
	return begin(t, replicas, defaults, nil, "prefill", "decode")
}

// begin has a graph of some services run.
func begin(t *testing.T, replicas int32, d graph.Defaults, annotations map[string]string, services ...v1alpha1.ComponentType) *cluster {
	t.Helper()
	c := created(t, replicas, d, annotations, services...)
	c.until("the graph to run", func(d managed.Decision) bool {
		return len(d.Rolling) == 0 && len(c.owned) == len(services) && c.serving() == int(replicas) && revision.Stable(c.revisions) != nil
	})
	return c
}

// created is a graph of some services of which nothing is made yet.
func created(t *testing.T, replicas int32, d graph.Defaults, annotations map[string]string, services ...v1alpha1.ComponentType) *cluster {
	t.Helper()
	c := &cluster{T: t, now: time.Unix(10000, 0), limit: 10, floor: int(replicas) - int(replicas)/4, defaults: d}
	c.dgd = &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat", UID: "u"}}
	c.dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{}
	c.dgd.Annotations = annotations
	for _, kind := range services {
		c.dgd.Spec.Services[string(kind)] = &v1alpha1.SharedSpec{
			ComponentType: kind, Replicas: new(replicas),
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "example.com/engine:1.0.0"}},
		}
	}
	return c
}

func (c *cluster) image(image string) {
	for _, s := range c.dgd.Spec.Services {
		s.ExtraPodSpec.MainContainer.Image = image
	}
}

// reconcile is what the reconciler does, without a server.
func (c *cluster) reconcile() managed.Decision {
	c.Helper()
	d := c.defaults
	d.Running = graph.ReadRunning(c.dgd, c.owned)
	g, err := graph.FromGraphDeployment(c.dgd, d)
	if err != nil {
		c.Fatal(err)
	}
	g = pairing.Of(c.dgd, g, workload.ProviderComponent, d.Running, true)
	b := component.Builder{Graph: c.dgd, Defaults: d}
	s := snapshot.Snapshot{Owned: c.owned, Taken: c.now}
	p, _ := policy.Parse(c.dgd.Annotations)
	c.report()
	workers := status.Workers{
		Cells:   world.Cells(g, b.Members(g, s), world.Rules{Isolated: p.Isolation != policy.IsolationNone, Recorded: generation.ID(g.Generation), Named: func(service, id string, first bool) graph.Membership { return b.Named(g, service, id, first) }}),
		Aborted: map[generation.ID]string{},
	}
	for _, id := range revision.AbortedGenerations(c.revisions) {
		if id != p.Retry {
			workers.Aborted[generation.ID(id)] = revision.RecordOf(revision.OfGeneration(c.revisions, id)).Message
		}
	}
	restart, cells := status.NextRestart(c.dgd, g, b, s, workers)
	c.attention = c.attention.Looked(c.now, c.dgd.Status.Rollout, c.pods)
	pods := c.sighted()
	if !slices.ContainsFunc(cells, world.Cell.Rolling) {
		pods = nil // nobody looks
	}
	decided := managed.Next(managed.Input{
		Owner: c.dgd, Graph: g, Policy: p, Revisions: c.revisions, Requests: c.requests, Cells: cells,
		Sight:    world.Sight{Pods: pods, Crashes: c.crashes, Now: c.now, Since: c.attention.Since, Reached: c.attention.Reached, NoSpareAfter: 30 * time.Second, Admission: c.admission(g), AdmissionDeadline: 2 * time.Minute},
		Ready:    func(*graph.Graph) bool { return !c.slow && c.serving() > 0 },
		Settings: managed.Settings{ProgressDeadline: 10 * time.Minute, HistoryLimit: c.limit},
	})
	c.dgd.Status = status.Graph(c.dgd, decided.Graph, b, s, restart, decided.State, nil, metav1.NewTime(c.now))
	c.write(b, decided, restart)
	return decided
}

// sighted are the pods as they are seen: one without a node says so.
func (c *cluster) sighted() []corev1.Pod {
	all := slices.Clone(c.pods)
	for i := range all {
		if all[i].Spec.NodeName == "" {
			all[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}
	}
	return all
}

// place gives nodes to pods that have none, as long as there are.
func (c *cluster) place() {
	placed := 0
	for _, p := range c.pods {
		if p.Spec.NodeName != "" {
			placed++
		}
	}
	for i := range c.pods {
		if p := &c.pods[i]; p.Spec.NodeName == "" && (c.gpus == 0 || placed < c.gpus) {
			p.Spec.NodeName = "n"
			placed++
		}
	}
}

// report has components say whether all of their pods are ready.
func (c *cluster) report() {
	for _, o := range c.owned {
		dcd := o.(*v1alpha1.DynamoComponentDeployment)
		ready := 0
		var pods []corev1.Pod
		for _, p := range c.pods {
			if p.Labels["dcd"] == dcd.Name && p.DeletionTimestamp == nil && len(p.Status.Conditions) > 0 {
				ready++
				pods = append(pods, p)
			}
		}
		dcd.Status.Service = &v1alpha1.ServiceReplicaStatus{
			ComponentKind: "Deployment", ComponentName: dcd.Name, Replicas: int32(ready), UpdatedReplicas: int32(ready), ReadyReplicas: new(int32(ready)), Startup: workload.Startup(pods),
		}
		available := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
		if ready >= int(*dcd.Spec.Replicas) {
			available.Status = metav1.ConditionTrue
		}
		dcd.Status.Conditions = []metav1.Condition{available}
	}
}

func (c *cluster) write(b component.Builder, d managed.Decision, restart rollout.Step) {
	c.Helper()
	if c.dgd.Annotations == nil {
		c.dgd.Annotations = map[string]string{}
	}
	maps.Copy(c.dgd.Annotations, graph.RecordGraph(c.dgd, d.Graph, graph.Running{}))
	for _, key := range d.Retract {
		delete(c.dgd.Annotations, key)
	}
	if c.ends("annotations", len(d.Retract) > 0) {
		return
	}
	objects, err := b.Build(d.Shown(d.Graph.WithMarks(restart.Marks)), nil)
	if err != nil {
		c.Fatal(err)
	}
	var desired []graph.Desired
	for _, o := range objects {
		desired = append(desired, graph.Desired{Object: o})
	}
	desired = b.Carry(d.Graph, desired, d.Carried(), snapshot.Snapshot{Owned: c.owned})
	var pruned []graph.Object
	for _, o := range d.Pruned(c.owned) {
		if !slices.ContainsFunc(desired, func(w graph.Desired) bool { return w.GetName() == o.GetName() }) {
			pruned = append(pruned, o)
		}
	}
	wrote := 0
	for _, o := range pruned {
		c.owned = slices.DeleteFunc(c.owned, func(x graph.Object) bool { return x == o })
		wrote++
	}
	for _, w := range desired {
		dcd := w.Object.(*v1alpha1.DynamoComponentDeployment).DeepCopy() // as a server would
		dcd.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: c.dgd.Name}}
		at := slices.IndexFunc(c.owned, func(o graph.Object) bool { return o.GetName() == dcd.Name })
		switch {
		case at < 0:
			dcd.CreationTimestamp = metav1.NewTime(c.now)
			c.owned = append(c.owned, dcd)
			wrote++
		default:
			dcd.CreationTimestamp = c.owned[at].GetCreationTimestamp()
			if *c.owned[at].(*v1alpha1.DynamoComponentDeployment).Spec.Replicas != *dcd.Spec.Replicas {
				wrote++
			}
			c.owned[at] = dcd
		}
	}
	if c.ends("children", len(pruned) > 0) {
		return
	}
	for _, r := range d.Resize {
		r.Object.(*v1alpha1.DynamoComponentDeployment).Spec.Replicas = new(r.Replicas)
		wrote++
	}
	c.revisions = slices.DeleteFunc(slices.Clone(c.revisions), func(o *appsv1.ControllerRevision) bool { return !slices.Contains(d.Keep, graph.Object(o)) })
	for _, r := range d.Record {
		wrote++
		if there := slices.ContainsFunc(c.revisions, func(o *appsv1.ControllerRevision) bool { return o.Name == r.Revision.Name }); there == r.New {
			c.Errorf("revision %d is made: %v, and it was there: %v", r.Revision.Revision, r.New, there)
		}
		c.revisions = slices.DeleteFunc(slices.Clone(c.revisions), func(o *appsv1.ControllerRevision) bool { return o.Name == r.Revision.Name })
		c.revisions = append(c.revisions, r.Revision)
	}
	if wrote > 3 && len(d.Rolling) > 0 {
		c.Errorf("%d writes in one step", wrote)
	}
	c.writes += wrote
}

// ends reports whether the operator ends after it has written something.
func (c *cluster) ends(after string, wrote bool) bool {
	if c.dies != after || !wrote {
		return false
	}
	c.dies = ""
	return true
}

// life makes, readies and ends pods, one change at a time so that every order of things
// is met sooner or later.
func (c *cluster) life() {
	for _, o := range c.owned {
		dcd := o.(*v1alpha1.DynamoComponentDeployment)
		of := func(p corev1.Pod) bool { return p.Labels["dcd"] == dcd.Name && p.DeletionTimestamp == nil }
		have := 0
		for _, p := range c.pods {
			if of(p) {
				have++
			}
		}
		for ; have < int(*dcd.Spec.Replicas); have++ {
			c.next++
			labels := map[string]string{"dcd": dcd.Name, v1alpha1.LabelComponent: dcd.Labels[v1alpha1.LabelComponent], v1alpha1.LabelGeneration: dcd.Labels[v1alpha1.LabelGeneration]}
			c.pods = append(c.pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", dcd.Name, c.next), UID: types.UID(fmt.Sprint(c.next)), Labels: labels, CreationTimestamp: metav1.NewTime(c.now)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: dcd.Spec.ExtraPodSpec.MainContainer.Image}}},
			})
		}
		for i := range c.pods {
			if p := &c.pods[i]; of(*p) && have > int(*dcd.Spec.Replicas) {
				p.DeletionTimestamp = new(metav1.NewTime(c.now))
				have--
			}
		}
	}
	for i := range c.pods { // what is owned by nothing goes
		p := &c.pods[i]
		if p.DeletionTimestamp == nil && !slices.ContainsFunc(c.owned, func(o graph.Object) bool { return o.GetName() == p.Labels["dcd"] }) {
			p.DeletionTimestamp = new(metav1.NewTime(c.now))
		}
	}
	c.beat()
}

// beat has time pass: one that leaves is gone, and one that starts is ready.
func (c *cluster) beat() {
	c.now = c.now.Add(6 * time.Second)
	if at := slices.IndexFunc(c.pods, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil && c.now.Sub(p.DeletionTimestamp.Time) > max(c.lingers, 10*time.Second)
	}); at >= 0 {
		c.pods = slices.Delete(slices.Clone(c.pods), at, at+1)
	}
	c.place()
	c.load()
	for i := range c.pods {
		if p := &c.pods[i]; p.DeletionTimestamp == nil && p.Status.Conditions == nil && p.Spec.NodeName != "" && p.Spec.Containers[0].Image != c.broken && c.loaded(*p) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.now)}}
			return
		}
	}
}

// serving counts the pairs that complete generations have, from outside.
func (c *cluster) serving() int {
	ready := map[string]map[string]int{}
	for _, p := range c.pods {
		if p.DeletionTimestamp != nil || len(p.Status.Conditions) == 0 {
			continue
		}
		id := p.Labels[v1alpha1.LabelGeneration]
		if ready[id] == nil {
			ready[id] = map[string]int{}
		}
		ready[id][p.Labels[v1alpha1.LabelComponent]]++
	}
	sum := map[string]int{}
	for _, roles := range ready {
		if c.complete(roles) {
			for role, n := range roles {
				sum[role] += n
			}
		}
	}
	least := sum["decode"]
	for role, n := range sum {
		if role != "prefill" || !c.parked {
			least = min(least, n)
		}
	}
	return least
}

// complete reports whether a generation has all that the graph has in those.
func (c *cluster) complete(roles map[string]int) bool {
	paired := c.dgd != nil && c.dgd.Annotations[v1alpha1.AnnotationRolloutIsolation] != ""
	return (roles["prefill"] > 0 || c.parked) && roles["decode"] > 0 && (!paired || roles["frontend"] > 0)
}

// until goes on until something is so; once the graph has run, never less than its floor
// may serve.
func (c *cluster) until(what string, done func(managed.Decision) bool) {
	c.Helper()
	ran := c.serving() >= c.floor
	for range 600 {
		d := c.reconcile()
		if done(d) {
			return
		}
		c.life()
		if n := c.serving(); ran && n < c.floor {
			c.Fatalf("waiting for %s: %d pairs serve, and %d have to: %+v", what, n, c.floor, c.dgd.Status.Rollout)
		}
	}
	c.Fatalf("no end of waiting for %s: %+v", what, c.dgd.Status.Rollout)
}

func settled(d managed.Decision) bool { return len(d.Rolling) == 0 }

// uids are those of the pods of a generation that are there to stay.
func (c *cluster) uids(generation string) []types.UID {
	var all []types.UID
	for _, p := range c.pods {
		if p.DeletionTimestamp == nil && p.Labels[v1alpha1.LabelGeneration] == generation {
			all = append(all, p.UID)
		}
	}
	return all
}

func (c *cluster) quiet() {
	c.Helper()
	for range 5 { // what is left to be recorded
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

func TestAnImageChangeKeepsCompleteGenerationsAtTheFloorUntilItIsCompleted(t *testing.T) {
	for _, replicas := range []int32{1, 2, 4} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			c := start(t, replicas)
			c.quiet()
			first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			c.image("example.com/engine:1.1.0")
			c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 })
			c.until("the rollout to be completed", settled)
			c.quiet()
			now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			st := c.dgd.Status.Rollout
			if now == first || st.Phase != "Completed" || st.Target != now || c.dgd.Status.RollingUpdate.Phase != "Completed" {
				t.Errorf("generation %s, then %s: %+v", first, now, st)
			}
			for name, role := range st.Roles {
				if int(role.Lowest) < c.floor {
					t.Errorf("the certificate of %s says %d, under its floor of %d", name, role.Lowest, c.floor)
				}
			}
			for _, p := range c.pods {
				if p.Labels[v1alpha1.LabelGeneration] != now {
					t.Errorf("pod %s is left of generation %s", p.Name, p.Labels[v1alpha1.LabelGeneration])
				}
			}
			if want := graph.GenerationName("chat", "decode", now); !slices.ContainsFunc(c.owned, func(o graph.Object) bool { return o.GetName() == want }) {
				t.Errorf("no component %s", want)
			}
			if r := revision.OfGeneration(c.revisions, now); r == nil || revision.ResultOf(r) != revision.Completed {
				t.Errorf("revision %v", r)
			}
		})
	}
}

// TestEvictionsAreCountedInCompleteGenerations: the candidate does not keep the floor
// before it serves, nor the stable generation once a role of it is gone.
func TestEvictionsAreCountedInCompleteGenerations(t *testing.T) {
	c := start(t, 2)
	first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	var words []string
	follow := func(d managed.Decision) bool {
		of, rolls := d.Shown(d.Graph).Serving["decode"]
		word := "all"
		if rolls {
			word = strings.Join(of.Generations, "+")
		}
		if len(words) == 0 || words[len(words)-1] != word {
			words = append(words, word)
		}
		if rolls && (of.Desired != 2 || of.Replicas < 2) {
			t.Errorf("%+v of 2 replicas", of)
		}
		return len(words) > 1 && word == "all"
	}
	c.image("example.com/engine:1.1.0")
	c.until("all to count again", follow)
	now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	both := []string{first, now}
	slices.Sort(both)
	if diff := cmp.Diff([]string{first, strings.Join(both, "+"), now, "all"}, words); diff != "" {
		t.Errorf("generations that count (-want +got):\n%s", diff)
	}
}

// TestAChangeRightAfterAnotherLeavesARevisionToGoBackTo: it comes when the one before has
// arrived, and is not yet seen to be ready.
func TestAChangeRightAfterAnotherLeavesARevisionToGoBackTo(t *testing.T) {
	c := start(t, 2)
	c.slow = true
	var ids []string
	for _, tag := range []string{"1.1.0", "1.2.0"} {
		c.image("example.com/engine:" + tag)
		c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 })
		c.until("the rollout to be completed", settled)
		ids = append(ids, c.dgd.Annotations[v1alpha1.AnnotationGeneration])
	}
	c.slow = false
	c.quiet()
	for _, id := range ids {
		if r := revision.OfGeneration(c.revisions, id); r == nil || revision.ResultOf(r) != revision.Completed {
			t.Errorf("generation %s was arrived at, and its revision says %+v", id, r)
		}
	}
	if before := revision.Before(c.revisions, ids[1]); before == nil || revision.Generation(before) != ids[0] {
		t.Errorf("undo would go to %+v", before)
	}
}

func TestARevertHalfWayKeepsThePodsThatStillRan(t *testing.T) {
	for name, limit := range map[string]int{"with its history": 10, "and forgets what was reverted": 1} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 4)
			c.limit = limit
			c.revert()
			if want := min(limit, 2); len(c.revisions) != want {
				t.Errorf("%d revisions, want %d", len(c.revisions), want)
			}
		})
	}
}

func (c *cluster) revert() {
	c.Helper()
	first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.image("example.com/engine:1.1.0")
	c.until("something of the old to have gone", func(managed.Decision) bool {
		return len(c.owned) == 4 && c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Shifting"
	})
	c.life() // what was told to go, goes
	old := c.uids(first)
	c.image("example.com/engine:1.0.0")
	c.until("the way back", settled)
	for _, uid := range old {
		if !slices.Contains(c.uids(first), uid) {
			c.Errorf("pod %s of the stable generation was replaced", uid)
		}
	}
	if now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]; now != first || len(c.owned) != 2 {
		c.Errorf("generation %s, was %s, with %d components", now, first, len(c.owned))
	}
	c.quiet()
}

func TestACandidateThatNeverComesUpIsAbortedAndNotTriedAgainUntilAsked(t *testing.T) {
	c := start(t, 2)
	stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	first := c.uids(stable)
	c.broken = "example.com/engine:1.1.0"
	c.image(c.broken)
	aborted := func(managed.Decision) bool {
		return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Aborted"
	}
	c.until("the candidate to be aborted", aborted)
	if c.dgd.Status.State != v1alpha1.GraphStateFailed || c.dgd.Status.Rollout.Reason != string(analysis.AbortDeadline) {
		t.Errorf("state %s, %+v", c.dgd.Status.State, c.dgd.Status.Rollout)
	}
	for _, uid := range first {
		if !slices.Contains(c.uids(stable), uid) {
			t.Errorf("pod %s of the stable generation was replaced", uid)
		}
	}
	// Neither a lost status nor lost annotations bring it back, and why is still told.
	id := revision.AbortedGenerations(c.revisions)[0]
	c.dgd.Status, c.dgd.Annotations = v1alpha1.DynamoGraphDeploymentStatus{}, nil
	c.quiet()
	if st := c.dgd.Status.Rollout; st.Phase != "Aborted" || st.Reason != string(analysis.AbortDeadline) {
		t.Errorf("after its status was lost: %+v", st)
	}
	if len(c.owned) != 2 {
		t.Errorf("%d components: it is tried again", len(c.owned))
	}
	// Scaling goes on meanwhile.
	c.dgd.Spec.Services["decode"].Replicas = new(int32(3))
	c.until("the stable generation to grow", func(managed.Decision) bool {
		return slices.ContainsFunc(c.owned, func(o graph.Object) bool {
			dcd := o.(*v1alpha1.DynamoComponentDeployment)
			return dcd.Labels[v1alpha1.LabelComponent] == "decode" && *dcd.Spec.Replicas == 3
		})
	})
	c.dgd.Spec.Services["decode"].Replicas = new(int32(2))
	c.broken = ""
	c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = id
	c.until("the retry to be completed", settled)
	if _, left := c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry]; left || c.dgd.Annotations[v1alpha1.AnnotationGeneration] != id {
		t.Errorf("annotations %v", c.dgd.Annotations)
	}
}

// TestARetryCountsThoughTheGraphHasChangedBesideItsWorkers: the same workers have a
// revision for each spec that they were a part of, and the newest tells of them.
func TestARetryCountsThoughTheGraphHasChangedBesideItsWorkers(t *testing.T) {
	c := start(t, 2)
	c.broken = "example.com/engine:1.1.0"
	c.image(c.broken)
	c.until("the candidate to be aborted", func(managed.Decision) bool {
		return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Aborted"
	})
	id := revision.AbortedGenerations(c.revisions)[0]
	c.broken = ""
	c.dgd.Spec.Services["decode"].Replicas = new(int32(3)) // another spec, the same workers
	c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry] = id
	c.until("the retry to be completed", settled)
	if at := c.dgd.Annotations[v1alpha1.AnnotationGeneration]; at != id {
		t.Errorf("generation %s serves, %+v", at, c.dgd.Status.Rollout)
	}
}

// TestACandidateIsAbortedAtItsThirdCrashInTenMinutes: two, or a third long after, or those
// of the stable generation, are no reason.
func TestACandidateIsAbortedAtItsThirdCrashInTenMinutes(t *testing.T) {
	for name, test := range map[string]struct {
		// ago is how long before now it crashed.
		ago    []time.Duration
		stable bool
		want   string
	}{
		"three in ten minutes":        {[]time.Duration{9 * time.Minute, time.Minute, time.Second}, false, "Aborted"},
		"two":                         {[]time.Duration{time.Minute, time.Second}, false, "Held"},
		"the first is longer ago":     {[]time.Duration{11 * time.Minute, time.Minute, time.Second}, false, "Held"},
		"the stable generation's own": {[]time.Duration{3 * time.Second, 2 * time.Second, time.Second}, true, "Held"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 2)
			c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold"
			stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			c.image("example.com/engine:1.1.0")
			held := func(managed.Decision) bool {
				return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Held"
			}
			c.until("the step", held)
			of := c.dgd.Status.Rollout.Target
			if test.stable {
				of = stable
			}
			for _, ago := range test.ago {
				c.crashes = append(c.crashes, world.Crash{Generation: of, Service: "decode", Pod: "chat-decode-x", At: c.now.Add(-ago)})
			}
			for range 5 {
				c.reconcile()
				c.life()
			}
			if test.want == "Aborted" {
				c.until("the way back", func(managed.Decision) bool { return c.dgd.Status.Rollout.Phase == "Aborted" })
			}
			if st := c.dgd.Status.Rollout; st.Phase != test.want || test.want == "Aborted" && st.Reason != string(analysis.AbortCrashed) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestLaterGenerationsCountAPodAfterAWhile, and the first stays as it was made.
func TestLaterGenerationsCountAPodAfterAWhile(t *testing.T) {
	least := func(c *cluster) map[string]string {
		all := map[string]string{}
		for _, o := range c.owned {
			dcd := o.(*v1alpha1.DynamoComponentDeployment)
			g, err := graph.FromComponentDeployment(dcd, defaults)
			if err != nil {
				c.Fatal(err)
			}
			all[dcd.Labels[v1alpha1.LabelComponent]] = g.Components[0].ObjectAnnotations()[v1alpha1.AnnotationMinReadySeconds]
		}
		return all
	}
	c := start(t, 1)
	c.dgd.Spec.Services["prefill"].Annotations = map[string]string{v1alpha1.AnnotationMinReadySeconds: "30"}
	c.quiet()
	if diff := cmp.Diff(map[string]string{"decode": "", "prefill": "30"}, least(c)); diff != "" {
		t.Errorf("the first generation (-want +got):\n%s", diff)
	}
	c.image("example.com/engine:1.1.0")
	c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) == 4 })
	c.until("the rollout to be completed", settled)
	c.quiet()
	if diff := cmp.Diff(map[string]string{"decode": "5", "prefill": "30"}, least(c)); diff != "" {
		t.Errorf("the second (-want +got):\n%s", diff)
	}
}

// TestARolloutAtAStepTellsFromTheFirstWhatItWaitsFor: whoever follows a rollout goes by
// the reason whether time alone will end it.
func TestARolloutAtAStepTellsFromTheFirstWhatItWaitsFor(t *testing.T) {
	held := func(c *cluster, waits policy.Waits, step string) {
		c.Helper()
		c.until("the step "+step, func(managed.Decision) bool {
			return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Held" && c.dgd.Status.Rollout.Step == step
		})
		if st := c.dgd.Status.Rollout; st.Reason != string(waits) || !strings.Contains(st.Message, "step "+step) {
			c.Errorf("at step %s it says %s: %s", step, st.Reason, st.Message)
		}
	}
	c := start(t, 4)
	// Two steps of one share: the second is reached as soon as the first is passed.
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 5m, 25% hold, 50% hold"
	c.image("example.com/engine:1.1.0")
	held(c, policy.WaitsForTime, "1/3")
	held(c, policy.WaitsForPromotion, "2/3")
	c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/2"
	held(c, policy.WaitsForPromotion, "3/3")
	c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = c.dgd.Status.Rollout.Target
	before := c.dgd.Status
	c.reconcile()
	c.dgd.Status = before // what would be told of it is not stored
	c.until("the candidate to be aborted", func(managed.Decision) bool { return c.dgd.Status.Rollout.Phase == "Aborted" })
	if st := c.dgd.Status.Rollout; st.Reason != string(analysis.AbortRequested) {
		t.Errorf("a user aborted it, and it says %s: %s", st.Reason, st.Message)
	}
}

func TestScalingAndHarmlessFieldsStartNoGeneration(t *testing.T) {
	c := start(t, 2)
	c.dgd.Spec.Services["decode"].Replicas = new(int32(3))
	c.dgd.Spec.Services["decode"].ExtraPodSpec.PodSpec = &corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}
	for range 20 {
		if d := c.reconcile(); len(d.Rolling) > 0 {
			t.Fatalf("it rolls: %+v", d.State.Cells[0].Cell.Fields)
		}
		c.life()
	}
	if len(c.owned) != 2 {
		t.Errorf("%d components", len(c.owned))
	}
}

func TestIsolationNoneReplacesInPlace(t *testing.T) {
	c := start(t, 2)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutIsolation] = "none"
	c.image("example.com/engine:1.1.0")
	for range 20 {
		if d := c.reconcile(); len(d.Rolling) > 0 {
			t.Fatal("it rolls")
		}
	}
}

// decodes fails while something is waited for and fewer of decode are ready.
func (c *cluster) decodes(least int, done func(managed.Decision) bool) func(managed.Decision) bool {
	return func(d managed.Decision) bool {
		c.Helper()
		n := 0
		for _, p := range c.pods {
			if p.DeletionTimestamp == nil && len(p.Status.Conditions) > 0 && p.Labels[v1alpha1.LabelComponent] == "decode" {
				n++
			}
		}
		if n < least {
			c.Fatalf("%d decode are ready, and %d have to: %+v", n, least, c.dgd.Status.Rollout)
		}
		return done(d)
	}
}

// TestAWorkerWithoutReplicasTakesNothingFromTheOthers: a graph of plain workers, of which
// one is parked, keeps its floor and can be aborted.
func TestAWorkerWithoutReplicasTakesNothingFromTheOthers(t *testing.T) {
	c := start(t, 4)
	c.dgd.Spec.Services["prefill"].Replicas = new(int32(0))
	c.floor = 0 // pairs
	least := func(done func(managed.Decision) bool) func(managed.Decision) bool { return c.decodes(3, done) }
	c.until("prefill to be parked", least(func(managed.Decision) bool { return len(c.pods) == 4 }))
	c.quiet()
	c.broken = "example.com/engine:1.1.0"
	c.image(c.broken)
	c.until("the candidate to be aborted", least(func(managed.Decision) bool {
		return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Aborted"
	}))
	if st := c.dgd.Status.Rollout; st.Reason != string(analysis.AbortDeadline) || st.Roles["decode"].Floor != 3 {
		t.Errorf("%+v", st)
	}
	c.image("example.com/engine:1.2.0")
	c.until("the rollout to begin", least(func(d managed.Decision) bool { return len(d.Rolling) > 0 && len(c.owned) > 2 }))
	c.until("the rollout to be completed", least(settled))
	c.quiet()
}

// told are the replicas that all generations together were told of a service.
func (c *cluster) told(service string) (n int) {
	for _, o := range c.owned {
		if dcd := o.(*v1alpha1.DynamoComponentDeployment); dcd.Labels[v1alpha1.LabelComponent] == service {
			n += int(*dcd.Spec.Replicas)
		}
	}
	return n
}

func (c *cluster) scale(replicas int32) {
	for _, s := range c.dgd.Spec.Services {
		s.Replicas = new(replicas)
	}
}

// TestARolloutThatIsHeldIsScaled, whether a user paused it or a failure did.
func TestARolloutThatIsHeldIsScaled(t *testing.T) {
	for name, hold := range map[string]func(*cluster){
		"paused": func(c *cluster) { c.dgd.Annotations[v1alpha1.AnnotationRolloutPaused] = "true" },
		"after a failure": func(c *cluster) {
			c.dgd.Annotations[v1alpha1.AnnotationRolloutOnFailure] = "hold"
			for range 3 {
				c.crashes = append(c.crashes, world.Crash{Generation: c.dgd.Status.Rollout.Target, Service: "decode", Pod: "chat-decode-x", At: c.now})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 2)
			c.image("example.com/engine:1.1.0")
			c.until("half of it", func(managed.Decision) bool {
				return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Shifting"
			})
			hold(c)
			held := func(managed.Decision) bool { return c.dgd.Status.Rollout.Phase == "Held" }
			c.until("the rollout to be held", held)
			c.scale(4)
			c.until("the rollout to be scaled", func(managed.Decision) bool { return c.told("decode") == 4 && c.told("prefill") == 4 })
			for range 20 {
				c.life()
				c.reconcile()
			}
			c.quiet()
			if n := c.serving(); n != 4 || !held(managed.Decision{}) {
				t.Errorf("%d pairs serve: %+v", n, c.dgd.Status.Rollout)
			}
			c.scale(1)
			c.floor = 1
			c.until("the rollout to be scaled down", func(managed.Decision) bool { return c.told("decode") == 2 && c.told("prefill") == 2 })
			c.quiet()
		})
	}
}

// TestAGraphThatSleepsAtAStepIsAtItWhenItWakes: the stable generation is there still, and
// the candidate was approved by nobody.
func TestAGraphThatSleepsAtAStepIsAtItWhenItWakes(t *testing.T) {
	c := start(t, 4)
	stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold"
	c.image("example.com/engine:1.1.0")
	at := func(managed.Decision) bool {
		st := c.dgd.Status.Rollout
		return st != nil && st.Phase == "Held" && st.Reason == string(policy.WaitsForPromotion)
	}
	c.until("the step", at)
	c.scale(0)
	c.floor = 0
	c.until("the graph to sleep", func(managed.Decision) bool {
		return len(c.pods) == 0 && c.dgd.Status.Rollout.Reason == "NothingDesired"
	})
	c.quiet()
	if st := c.dgd.Status.Rollout; st.Stable != stable || st.Step != "1/1" || len(c.owned) != 4 {
		t.Errorf("asleep: %+v", st)
	}
	c.scale(4)
	c.until("the step again", at)
	if n := len(c.uids(stable)); n != 6 { // 3 decode, 3 prefill
		t.Errorf("%d pods of the stable generation, %+v", n, c.dgd.Status.Rollout)
	}
}

// TestAStepOfSeveralEntriesIsHeldWithTheStableGenerationComplete: plain workers are all
// entries of one cell.
func TestAStepOfSeveralEntriesIsHeldWithTheStableGenerationComplete(t *testing.T) {
	for name, replicas := range map[string][2]int32{"one and one": {1, 1}, "two and one": {2, 1}} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 2)
			// Two workers that do all of the work, under names that the cluster counts pairs by.
			for i, service := range []string{"decode", "prefill"} {
				c.dgd.Spec.Services[service].ComponentType = "worker"
				c.dgd.Spec.Services[service].Replicas = new(replicas[i])
			}
			c.floor = 0
			c.until("the workers to be plain", func(d managed.Decision) bool { return settled(d) && len(c.pods) == int(replicas[0]+replicas[1]) })
			c.quiet()
			stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "1 hold"
			c.image("example.com/engine:1.1.0")
			c.floor = 1
			c.until("the step", func(managed.Decision) bool {
				return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Held"
			})
			if st := c.dgd.Status.Rollout; st.Reason != string(policy.WaitsForPromotion) || len(c.uids(stable)) != 2 {
				t.Errorf("%d pods of the stable generation, %+v", len(c.uids(stable)), st)
			}
			c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/1"
			c.until("the rollout to be completed", settled)
		})
	}
}

// TestAStepIsHeldBesideACellThatCannotStopAtIt: one entry is all or nothing, and what its
// cell has passed another has not.
func TestAStepIsHeldBesideACellThatCannotStopAtIt(t *testing.T) {
	c := created(t, 1, defaults, nil, "prefill", "decode", "worker")
	c.dgd.Spec.Services["prefill"].Replicas, c.dgd.Spec.Services["decode"].Replicas = new(int32(2)), new(int32(4))
	c.until("the graph to run", func(d managed.Decision) bool {
		return settled(d) && len(c.pods) == 7 && c.serving() == 1 && revision.Stable(c.revisions) != nil
	})
	stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "25% hold"
	c.image(second)
	left := func() map[string]int {
		of := map[string]int{}
		for _, p := range c.pods {
			if p.DeletionTimestamp == nil && p.Labels[v1alpha1.LabelGeneration] == stable {
				of[p.Labels[v1alpha1.LabelComponent]]++
			}
		}
		return of
	}
	c.until("the worker to be replaced", func(managed.Decision) bool { return left()["worker"] == 0 })
	c.until("the step", func(d managed.Decision) bool {
		return c.dgd.Status.Rollout.Phase == "Held" && len(d.State.Rolling()) == 1
	})
	c.quiet()
	if st := c.dgd.Status.Rollout; st.Step != "1/1" || st.Reason != string(policy.WaitsForPromotion) {
		t.Errorf("at step %s it says %s: %s", st.Step, st.Reason, st.Message)
	}
	if diff := cmp.Diff(map[string]int{"decode": 3, "prefill": 2}, left()); diff != "" {
		t.Errorf("pods of the stable generation (-want +got):\n%s", diff)
	}
	c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/1"
	c.until("the rollout to be completed", settled)
}
