package world

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestWorkersServeOnceFrontendsKnowThem: a worker that is ready counts as far as the
// frontends know it that would send it requests, in its own namespace.
func TestWorkersServeOnceFrontendsKnowThem(t *testing.T) {
	now := time.Unix(10000, 0)
	knows := func(namespace string, n int) Admission {
		return Admission{Known: true, Workers: map[string]map[string]map[string]int{"m": {namespace: {"decode": n}}}}
	}
	for rule, c := range map[string]struct {
		paired bool
		sight  Sight
		want   map[generation.ID]int
	}{
		"where none can be asked, what has been ready for long": {want: map[generation.ID]int{"": 2, "new": 2}},
		"shared frontends know all":                             {sight: Sight{Admission: knows("ns-new", 1)}, want: map[generation.ID]int{"": 0, "new": 1}},
		"workers of no generation are in the plain namespace":   {sight: Sight{Admission: knows("ns", 2)}, want: map[generation.ID]int{"": 2, "new": 0}},
		"frontends in pairs know theirs": {
			paired: true, sight: Sight{Paired: map[generation.ID]Admission{"": knows("ns", 2), "new": knows("ns-new", 1)}},
			want: map[generation.ID]int{"": 2, "new": 1},
		},
		"and may not name the namespace that they look into": {
			paired: true, sight: Sight{Paired: map[generation.ID]Admission{"": knows("", 2), "new": knows("", 1)}},
			want: map[generation.ID]int{"": 2, "new": 1},
		},
		"which shared ones cannot": {sight: Sight{Admission: knows("", 2)}, want: map[generation.ID]int{"": 0, "new": 0}},
		"those of one do not speak for another": {
			paired: true, sight: Sight{Admission: knows("ns", 2), Paired: map[generation.ID]Admission{"new": knows("ns-new", 0)}},
			want: map[generation.ID]int{"": 2, "new": 0},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			decode := graph.Component{Name: "decode", Role: graph.RoleDecode, DynamoNamespace: "ns", Model: "m", Replicas: 2}
			g := &graph.Graph{Paired: c.paired, Contract: graph.ContractV1, Components: []graph.Component{decode}}
			var members []workload.Member
			c.sight.Now = now
			for _, id := range []string{"", "new"} {
				stored := decode
				stored.Generation = id
				members = append(members, workload.Member{Service: "decode", Generation: id, Stored: stored, Replicas: 2})
				for _, name := range []string{"a", "b"} {
					p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + id, Labels: map[string]string{v1alpha1.LabelComponent: "decode", v1alpha1.LabelGeneration: id}}}
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}}
					c.sight.Pods = append(c.sight.Pods, p)
				}
			}
			c.sight.AdmissionDeadline = 30 * time.Second
			got := map[generation.ID]int{}
			for _, seen := range Cells(g, members, Rules{Isolated: true})[0].World(g, c.sight).Generations {
				got[seen.ID] = seen.Roles[0].Routable
				if refused := seen.Roles[0].Refused; refused != 2-got[seen.ID] {
					t.Errorf("of 2 that are ready %d are routable and %d refused", got[seen.ID], refused)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("routable (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWorkersAreRefusedOnceFrontendsHadTheTimeToFindThem: of one that has just started it
// is not its workers' fault that it does not know them.
func TestWorkersAreRefusedOnceFrontendsHadTheTimeToFindThem(t *testing.T) {
	const deadline = 2 * time.Minute
	now := time.Unix(10000, 0)
	knows := func(since time.Duration) Admission {
		return Admission{Known: true, Workers: map[string]map[string]map[string]int{"m": {"ns": {"decode": 0}}}, Since: now.Add(-since)}
	}
	for rule, c := range map[string]struct {
		paired bool
		worker time.Duration
		sight  Sight
		want   int
	}{
		"both have been ready for long":                {worker: time.Hour, sight: Sight{Admission: knows(deadline)}, want: 1},
		"a worker that has not been":                   {worker: deadline - time.Second, sight: Sight{Admission: knows(time.Hour)}},
		"frontends that have not been":                 {worker: time.Hour, sight: Sight{Admission: knows(deadline - time.Second)}},
		"in pairs those of its generation have been":   {paired: true, worker: time.Hour, sight: Sight{Admission: knows(0), Paired: map[generation.ID]Admission{"new": knows(deadline), "": knows(0)}}, want: 1},
		"and those of its generation alone have to be": {paired: true, worker: time.Hour, sight: Sight{Admission: knows(time.Hour), Paired: map[generation.ID]Admission{"new": knows(deadline - time.Second), "": knows(time.Hour)}}},
	} {
		t.Run(rule, func(t *testing.T) {
			decode := graph.Component{Name: "decode", Role: graph.RoleDecode, DynamoNamespace: "ns", Model: "m", Replicas: 1}
			g := &graph.Graph{Paired: c.paired, Contract: graph.ContractV1, Components: []graph.Component{decode}}
			decode.Generation = "new"
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{v1alpha1.LabelComponent: "decode", v1alpha1.LabelGeneration: "new"}}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-c.worker))}}
			c.sight.Now, c.sight.AdmissionDeadline, c.sight.Pods = now, deadline, []corev1.Pod{p}
			members := []workload.Member{{Service: "decode", Generation: "new", Stored: decode, Replicas: 1}}
			for _, seen := range Cells(g, members, Rules{Isolated: true})[0].World(g, c.sight).Generations {
				if got := seen.Roles[0].Refused; seen.ID == "new" && got != c.want {
					t.Errorf("%d are refused, and not %d", got, c.want)
				}
			}
		})
	}
}
