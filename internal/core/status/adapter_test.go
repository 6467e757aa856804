package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAdapter(t *testing.T) {
	graphOf := func(enabled bool) *v1alpha1.DynamoGraphDeployment {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat", UID: "u"}}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
			"decode": {ScalingAdapter: &v1alpha1.ScalingAdapter{Enabled: enabled}}, "nil": nil,
		}
		dgd.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"decode": {Replicas: 3}}
		return dgd
	}
	grouped := graphOf(true)
	grouped.Status.Services["decode"] = v1alpha1.ServiceReplicaStatus{ComponentKind: v1alpha1.ComponentKindLeaderWorkerSet, Replicas: 2}
	cases := map[string]struct {
		service  string
		graph    *v1alpha1.DynamoGraphDeployment
		owned    bool
		reason   string
		replicas int32
		selector string // beside graph and service
	}{
		"it decides about a service that enables it":         {"decode", graphOf(true), true, v1alpha1.ReasonScalingActive, 3, ""},
		"of a group the leader stands for the replica":       {"decode", grouped, true, v1alpha1.ReasonScalingActive, 2, ",role=leader"},
		"a graph that is gone is told":                       {"decode", nil, true, v1alpha1.ReasonGraphNotFound, 0, ""},
		"a service that is gone is told":                     {"other", graphOf(true), true, v1alpha1.ReasonServiceNotFound, 0, ""},
		"a service that does not enable it is told":          {"decode", graphOf(false), true, v1alpha1.ReasonAdapterDisabled, 3, ""},
		"a null service does not enable it":                  {"nil", graphOf(true), true, v1alpha1.ReasonAdapterDisabled, 0, ""},
		"an adapter that somebody else made decides nothing": {"decode", graphOf(true), false, v1alpha1.ReasonAdapterNotOwned, 3, ""},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
			a.Spec.DGDRef = v1alpha1.GraphServiceRef{Name: "chat", ServiceName: c.service}
			if c.owned {
				a.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: new(true)}}
			}
			s := Adapter(a, c.graph, 0, now)
			if got := s.Conditions[0].Reason; got != c.reason {
				t.Errorf("reason %s, want %s", got, c.reason)
			}
			if s.Replicas != c.replicas {
				t.Errorf("replicas %d, want those that were seen: %d", s.Replicas, c.replicas)
			}
			if want := "nvidia.com/dynamo-graph-deployment-name=chat,nvidia.com/dynamo-component=" + c.service + c.selector; s.Selector != want {
				t.Errorf("selector %s, want %s", s.Selector, want)
			}
		})
	}
}

func TestAnAdapterTellsWantedGrantedAndDrainingReplicas(t *testing.T) {
	for _, x := range []struct {
		rule   string
		change func(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment)
		ending int
		want   []int32 // nothing is told of an adapter that decides nothing
	}{
		{"without a budget what was asked for is granted", nil, 0, []int32{5, 5, 0}},
		{"a budget leaves less", func(_ *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Status.Services["decode"] = v1alpha1.ServiceReplicaStatus{Replicas: 3, GrantedReplicas: new(int32(2))}
		}, 1, []int32{5, 2, 1}},
		{"what was granted is never more than is asked for now", func(a *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) {
			a.Spec.Replicas = 1
			dgd.Status.Services["decode"] = v1alpha1.ServiceReplicaStatus{Replicas: 3, GrantedReplicas: new(int32(3))}
		}, 2, []int32{1, 1, 2}},
		{"pods of several nodes are one replica", func(_ *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Spec.Services["decode"].Multinode = &v1alpha1.Multinode{NodeCount: 2}
		}, 3, []int32{5, 5, 2}},
		{"a graph that sleeps is granted none", func(_ *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}}
		}, 0, []int32{5, 0, 0}},
		{"but its frontend is awake", func(_ *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Spec.Services["decode"].ComponentType = "frontend"
			dgd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}}
		}, 0, []int32{5, 5, 0}},
		{"one that decides nothing tells nothing", func(_ *v1alpha1.DynamoGraphDeploymentScalingAdapter, dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Spec.Services["decode"].ScalingAdapter.Enabled = false
		}, 1, nil},
	} {
		t.Run(x.rule, func(t *testing.T) {
			a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: new(true)}}}}
			a.Spec.Replicas, a.Spec.DGDRef = 5, v1alpha1.GraphServiceRef{Name: "chat", ServiceName: "decode"}
			a.Status.WantedReplicas = new(int32(7)) // as it was last
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat", UID: "u"}}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"decode": {ComponentType: "worker", ScalingAdapter: &v1alpha1.ScalingAdapter{Enabled: true}}}
			dgd.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"decode": {Replicas: 3}}
			if x.change != nil {
				x.change(a, dgd)
			}
			s := Adapter(a, dgd, x.ending, now)
			var got []int32
			for _, n := range []*int32{s.WantedReplicas, s.GrantedReplicas, s.DrainingReplicas} {
				if n != nil {
					got = append(got, *n)
				}
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
			a.Status = s
			if diff := cmp.Diff(s, Adapter(a, dgd, x.ending, metav1.NewTime(now.Add(time.Hour)))); diff != "" {
				t.Errorf("nothing changed, and it is written again: %s", diff)
			}
		})
	}
}

// TestAnAdapterTellsOfItsServiceWhatItsGraphDoes: what it says is what the graph's status
// says, and nothing of it while the adapter decides nothing.
func TestAnAdapterTellsOfItsServiceWhatItsGraphDoes(t *testing.T) {
	type told struct {
		Ready, Starting *int32
		Startup         *v1alpha1.StartupTimes
		LimitedBy       string
		Conditions      []string
	}
	starts := &v1alpha1.StartupTimes{P50Seconds: 80, P95Seconds: 95, Samples: 4}
	const short, slept = "decode has 3 of 5 replicas: the budget of graph chat is 3 GPUs", "no request since noon"
	limited := metav1.Condition{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBudgetExhausted, Message: short}
	blind := metav1.Condition{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMetricsUnavailable, Message: "the planner changes nothing"}
	asleep := metav1.Condition{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle, Message: slept}
	awake := metav1.Condition{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonActive, Message: "workers end after 15m"}
	saysLimited, saysAsleep := "ScalingLimited True BudgetExhausted "+short, "Dormant True Idle "+slept
	for _, x := range []struct {
		rule       string
		spec       v1alpha1.SharedSpec
		asks       int32
		service    v1alpha1.ServiceReplicaStatus
		conditions []metav1.Condition
		want       told
	}{
		{"what is not ready starts", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{Replicas: 5, ReadyReplicas: new(int32(2)), Startup: starts}, nil,
			told{Ready: new(int32(2)), Starting: new(int32(3)), Startup: starts}},
		{"where readiness is not reported, what is available is ready", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{Replicas: 5, AvailableReplicas: new(int32(4))}, nil,
			told{Ready: new(int32(4)), Starting: new(int32(1))}},
		{"what nobody has reported is not told", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{Replicas: 5}, nil, told{}},
		{"no fewer than none start", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{Replicas: 1, ReadyReplicas: new(int32(2))}, nil,
			told{Ready: new(int32(2)), Starting: new(int32(0))}},
		{"a budget limits", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{GrantedReplicas: new(int32(3)), LimitedBy: "graph chat"}, []metav1.Condition{limited},
			told{LimitedBy: "graph chat", Conditions: []string{saysLimited}}},
		{"that of another service is not its own", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{GrantedReplicas: new(int32(5))}, []metav1.Condition{limited}, told{}},
		{"nothing limits one that now asks for what it has", v1alpha1.SharedSpec{}, 3, v1alpha1.ServiceReplicaStatus{GrantedReplicas: new(int32(3)), LimitedBy: "graph chat"}, []metav1.Condition{limited}, told{}},
		{"a planner that sees nothing does not limit what others ask of the adapter", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{}, []metav1.Condition{blind}, told{}},
		{"it sleeps with its graph", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{}, []metav1.Condition{asleep}, told{Conditions: []string{saysAsleep}}},
		{"it is awake with its graph", v1alpha1.SharedSpec{}, 5, v1alpha1.ServiceReplicaStatus{}, []metav1.Condition{awake}, told{Conditions: []string{"Dormant False Active workers end after 15m"}}},
		{"a frontend does not sleep", v1alpha1.SharedSpec{ComponentType: "frontend"}, 5, v1alpha1.ServiceReplicaStatus{}, []metav1.Condition{asleep}, told{}},
		{"one that decides nothing tells nothing", v1alpha1.SharedSpec{ScalingAdapter: &v1alpha1.ScalingAdapter{}}, 5,
			v1alpha1.ServiceReplicaStatus{Replicas: 5, ReadyReplicas: new(int32(2)), Startup: starts, GrantedReplicas: new(int32(3)), LimitedBy: "graph chat"}, []metav1.Condition{limited, asleep}, told{}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: new(true)}}}}
			a.Spec.Replicas, a.Spec.DGDRef = x.asks, v1alpha1.GraphServiceRef{Name: "chat", ServiceName: "decode"}
			// As it was last.
			a.Status.ReadyReplicas, a.Status.StartingReplicas, a.Status.Startup, a.Status.LimitedBy = new(int32(7)), new(int32(7)), &v1alpha1.StartupTimes{Samples: 7}, "cluster"
			a.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: "Last", LastTransitionTime: now}, {Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: "Last", LastTransitionTime: now},
			}
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat", UID: "u"}}
			if x.spec.ComponentType == "" {
				x.spec.ComponentType = "worker"
			}
			if x.spec.ScalingAdapter == nil {
				x.spec.ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
			}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"decode": &x.spec}
			dgd.Status.Services, dgd.Status.Conditions = map[string]v1alpha1.ServiceReplicaStatus{"decode": x.service}, x.conditions
			s := Adapter(a, dgd, 0, now)
			got := told{Ready: s.ReadyReplicas, Starting: s.StartingReplicas, Startup: s.Startup, LimitedBy: s.LimitedBy}
			for _, c := range s.Conditions {
				if c.Type != v1alpha1.ConditionActive {
					got.Conditions = append(got.Conditions, strings.Join([]string{c.Type, string(c.Status), c.Reason, c.Message}, " "))
				}
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
			a.Status = s
			if diff := cmp.Diff(s, Adapter(a, dgd, 0, metav1.NewTime(now.Add(time.Hour)))); diff != "" {
				t.Errorf("nothing changed, and it is written again: %s", diff)
			}
		})
	}
}
