package graphdeployment

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// asked remembers who was.
type asked map[string][]string

func (a asked) Ask(of types.NamespacedName, frontends []netip.AddrPort, _ []string, _ time.Time) world.Admission {
	for _, f := range frontends {
		a[of.Name] = append(a[of.Name], f.String())
	}
	return world.Admission{Known: true, Workers: map[string]map[string]map[string]int{"m": {of.Name: {"decode": len(frontends)}}}}
}

// TestFrontendsAreAskedOnceTheyKnowTheWorkers: one that has just become ready would say of
// workers that serve that there are none. In pairs they know those of their generation.
func TestFrontendsAreAskedOnceTheyKnowTheWorkers(t *testing.T) {
	now := time.Unix(10000, 0)
	pod := func(address, service, generation string, since time.Duration, ready corev1.ConditionStatus) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: address, Labels: map[string]string{v1alpha1.LabelComponent: service}}}
		if generation != "" {
			p.Labels[v1alpha1.LabelGeneration] = generation
		}
		p.Status.PodIP = address
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-since))}}
		return p
	}
	leaving := pod("10.0.0.5", "front", "", time.Hour, corev1.ConditionTrue)
	leaving.DeletionTimestamp = new(metav1.NewTime(now))
	elsewhere := pod("10.0.0.6", "front", "", time.Hour, corev1.ConditionTrue)
	elsewhere.Spec.Containers = []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8001}}}}
	for rule, c := range map[string]struct {
		paired bool
		pods   []corev1.Pod
		want   asked
		since  map[string]time.Duration
	}{
		"all of a graph that have been ready for long enough, where they serve": {
			pods: []corev1.Pod{
				pod("10.0.0.1", "front", "", world.Settled, corev1.ConditionTrue),
				elsewhere,
				pod("10.0.0.2", "front", "", world.Settled-time.Second, corev1.ConditionTrue),
				pod("10.0.0.3", "front", "", time.Hour, corev1.ConditionFalse),
				pod("10.0.0.4", "decode", "", time.Hour, corev1.ConditionTrue),
				leaving,
			},
			want:  asked{"chat": {"10.0.0.1:8000", "10.0.0.6:8001"}},
			since: map[string]time.Duration{"": world.Settled},
		},
		"in pairs those of each generation, and before any has been all that are ready": {
			paired: true,
			pods: []corev1.Pod{
				pod("10.0.0.1", "front", "old", world.Settled, corev1.ConditionTrue),
				pod("10.0.0.2", "front", "old", time.Second, corev1.ConditionTrue),
				pod("10.0.0.3", "front", "new", time.Second, corev1.ConditionTrue),
				pod("10.0.0.4", "front", "new", time.Hour, corev1.ConditionFalse),
				pod("10.0.0.5", "decode", "new", time.Hour, corev1.ConditionTrue),
			},
			want:  asked{"chat/old": {"10.0.0.1:8000"}, "chat/new": {"10.0.0.3:8000"}},
			since: map[string]time.Duration{"old": world.Settled, "new": time.Second},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			g := &graph.Graph{Paired: c.paired, Contract: graph.ContractV1, Components: []graph.Component{{Name: "front", Role: graph.RoleFrontend}, {Name: "decode", Role: graph.RoleDecode}}}
			var members []workload.Member
			for _, id := range []string{"old", "new"} {
				for _, of := range g.Components {
					of.Generation = id
					members = append(members, workload.Member{Service: of.Name, Generation: id, Stored: of})
				}
			}
			seen := observation{graph: g}
			seen.cells = world.Cells(g, members, world.Rules{Isolated: true, Recorded: "old"})
			seen.sight = world.Sight{Now: now, Pods: c.pods}
			got := asked{}
			Observer{Frontends: got}.admission(&v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}, &seen, now)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if c.paired != (len(seen.sight.Paired) == 2) || c.paired == seen.sight.Admission.Known {
				t.Errorf("told %+v and %+v", seen.sight.Admission, seen.sight.Paired)
			}
			since := map[string]time.Duration{}
			for id, said := range seen.sight.Paired {
				since[string(id)] = now.Sub(said.Since)
			}
			if !c.paired {
				since[""] = now.Sub(seen.sight.Admission.Since)
			}
			if diff := cmp.Diff(c.since, since); diff != "" {
				t.Errorf("ready since (-want +got):\n%s", diff)
			}
		})
	}
}

// lists is to how many workers of a graph frontends send requests; less than none if they
// do not answer.
type lists int

func (n lists) Ask(types.NamespacedName, []netip.AddrPort, []string, time.Time) world.Admission {
	return world.Admission{Known: n >= 0, Workers: map[string]map[string]map[string]int{"m": {"ns": {"decode": max(0, int(n))}}}}
}

// TestWorkersAreRefusedOnceFrontendsHaveNotListedThemForLong: that one has been ready for
// long does not say that nobody ever sent it requests.
func TestWorkersAreRefusedOnceFrontendsHaveNotListedThemForLong(t *testing.T) {
	const deadline = 2 * time.Minute
	type look struct {
		at   time.Duration
		said lists
		want int
	}
	for rule, looks := range map[string][]look{
		"from the first look on":                   {{0, 0, 0}, {time.Minute, 0, 0}, {deadline, 0, 2}},
		"since they were last listed":              {{0, 2, 0}, {time.Minute, 2, 0}, {time.Minute + time.Second, 0, 0}, {2 * time.Minute, 0, 0}, {time.Minute + deadline, 0, 2}},
		"as far as they were":                      {{0, 0, 0}, {time.Minute, 1, 0}, {deadline, 0, 1}, {time.Minute + deadline, 0, 2}},
		"once they are listed again, not any more": {{0, 0, 0}, {time.Minute, 0, 0}, {deadline, 0, 2}, {deadline + time.Second, 2, 0}, {deadline + time.Minute, 0, 0}},
		"while nobody answers, nothing is known":   {{0, 0, 0}, {time.Minute, -1, 0}, {deadline, -1, 0}, {deadline + time.Second, 0, 0}, {deadline + time.Minute, 0, 0}, {2 * deadline, 0, 0}, {2*deadline + time.Second, 0, 2}},
		"an answer that is missed changes nothing": {{0, 0, 0}, {30 * time.Second, -1, 0}, {time.Minute, 0, 0}, {deadline, 0, 2}},
	} {
		t.Run(rule, func(t *testing.T) {
			start := time.Unix(10000, 0)
			decode := graph.Component{Name: "decode", Role: graph.RoleDecode, DynamoNamespace: "ns", Model: "m", Replicas: 2}
			seen := observation{graph: &graph.Graph{Contract: graph.ContractV1, Components: []graph.Component{decode, {Name: "front", Role: graph.RoleFrontend}}}}
			seen.cells = world.Cells(seen.graph, []workload.Member{{Service: "decode", Stored: decode, Replicas: 2}}, world.Rules{Isolated: true})
			for i, service := range []string{"front", "decode", "decode"} {
				p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i)), Labels: map[string]string{v1alpha1.LabelComponent: service}}}
				p.Status.PodIP = "10.0.0.1"
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))}}
				seen.sight.Pods = append(seen.sight.Pods, p)
			}
			o := Observer{Rollouts: Rollouts{AdmissionDeadline: deadline}, Admissions: &Admissions{}}
			for _, look := range looks {
				now := start.Add(look.at)
				seen.sight.Now, seen.sight.AdmissionDeadline = now, deadline
				o.Frontends = look.said
				o.admission(&v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}, &seen, now)
				if got := seen.cells[0].World(seen.graph, seen.sight).Generations[0].Roles[0].Refused; got != look.want {
					t.Errorf("after %v %d are refused, and not %d", look.at, got, look.want)
				}
			}
		})
	}
}

// TestCrashesAreForgottenWithTheirRollout, and are of one graph alone.
func TestCrashesAreForgottenWithTheirRollout(t *testing.T) {
	now := time.Unix(10000, 0)
	pod := func(ended ...string) []corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		for _, id := range ended {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: id, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id}},
			})
		}
		return []corev1.Pod{p}
	}
	var c Crashes
	of := func(graph types.UID) *v1alpha1.DynamoGraphDeployment {
		return &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{UID: graph}}
	}
	count := func(graph types.UID) int {
		crashes, _ := c.seen(of(graph), pod("1", "2"), now)
		return len(crashes)
	}
	c.seen(of("one"), pod(), now)
	c.seen(of("other"), pod("1", "2"), now)
	if n := count("one"); n != 2 {
		t.Errorf("%d crashes", n)
	}
	if n := count("other"); n != 0 {
		t.Errorf("%d crashes of another graph", n)
	}
	c.forget("one")
	if n := count("one"); n != 0 {
		t.Errorf("%d crashes of the rollout before", n)
	}
	if _, looked := c.seen(of("one"), nil, now.Add(time.Second)); !looked.Since.Equal(now) {
		t.Errorf("it is looked at since %v", looked.Since)
	}
	c.seen(of("one"), nil, now.Add(2*world.CrashWindow))
	if len(c.by) != 1 {
		t.Errorf("%d graphs are remembered", len(c.by))
	}
}

// TestAStepIsTakenOnceTheLastIsSeen, or after so long that somebody else must have
// changed it since.
func TestAStepIsTakenOnceTheLastIsSeen(t *testing.T) {
	now := time.Unix(10000, 0)
	told := func(object string) []managed.Expectation {
		return []managed.Expectation{
			{Service: "prefill", Generation: "b", Replicas: 1, Object: object}, {Service: "decode", Generation: "b", Replicas: 2, Object: object},
		}
	}
	unasked := func(all []workload.Member) []workload.Member {
		all[0].Unasked = true
		return all
	}
	members := func(replicas ...int32) (all []workload.Member) {
		for i, service := range []string{"prefill", "decode"}[:len(replicas)] {
			all = append(all, workload.Member{Service: service, Generation: "b", Replicas: replicas[i]}, workload.Member{Service: service, Generation: "a", Replicas: 2})
		}
		return all
	}
	written := []graph.Ref{{Kind: "PodCliqueSet", Name: "chat-b"}, {Kind: "Service", Name: "chat"}}
	for name, c := range map[string]struct {
		object string
		// none says that prefill was told to have none.
		none   bool
		failed bool
		seen   []workload.Member
		after  time.Duration
		want   bool
	}{
		"a set that is not seen yet":               {object: "chat-b", seen: members(), want: true},
		"a set of which one number is older":       {object: "chat-b", seen: members(1, 1), want: true},
		"a set that is seen":                       {object: "chat-b", seen: members(1, 2)},
		"a set that was not written":               {object: "chat-c", seen: members()},
		"a set with what nobody asked for":         {object: "chat-b", seen: unasked(members(1, 2)), want: true},
		"such a set when none was told":            {object: "chat-b", none: true, seen: unasked(members(1, 2))},
		"what Grove has made and is not seen":      {seen: members(1, 1), want: true},
		"what Grove has made and could not change": {failed: true, seen: members(1, 1)},
		"what somebody else has changed":           {object: "chat-b", seen: members(1, 3), after: expectFor},
	} {
		t.Run(name, func(t *testing.T) {
			var e Expectations
			all := told(c.object)
			if c.none {
				all[0].Replicas = 0
			}
			e.expect("u", all, written, c.failed, now)
			if got := e.unmet("u", c.seen, now.Add(c.after)); got != c.want {
				t.Errorf("unmet %v, want %v", got, c.want)
			}
		})
	}
}
