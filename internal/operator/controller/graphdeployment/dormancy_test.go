package graphdeployment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestAGraphThatScalesToZero: what is written for a graph, and said of it, by its
// annotation, its Lease and what it said last.
func TestAGraphThatScalesToZero(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lease := func(lastRequest time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: graph.ActivationName("chat"), CreationTimestamp: metav1.NewTime(now.Add(-24 * time.Hour))}}
		renewed := metav1.NewMicroTime(now.Add(-lastRequest))
		l.Spec.RenewTime = &renewed
		return l
	}
	told := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionDormant, Status: status, Reason: reason}
	}
	type verdict struct {
		Workers  int32  // of the service that asks for two
		Lease    string // made, pruned or left
		Reason   string // of the condition
		Activate bool   // an activator before the frontend
		Again    bool
	}
	for rule, c := range map[string]struct {
		after    string
		lease    *coordinationv1.Lease
		was      metav1.Condition
		provider workload.Provider
		want     verdict
		without  bool   // the installation lets no graph scale to zero
		rollout  string // the phase of one that was told; the graph is not ready then
		noToken  bool   // the frontend's pods mount none
	}{
		"nothing is made for others":                       {provider: workload.ProviderComponent, want: verdict{Workers: 2, Lease: "left"}},
		"the Lease is made first":                          {after: "15m", provider: workload.ProviderComponent, want: verdict{2, "made", v1alpha1.ReasonWaking, true, true}},
		"requests keep it awake":                           {"15m", lease(time.Minute), told("False", v1alpha1.ReasonActive), workload.ProviderComponent, verdict{2, "left", v1alpha1.ReasonActive, true, true}, false, "", false},
		"without any its workers end":                      {"15m", lease(time.Hour), told("False", v1alpha1.ReasonActive), workload.ProviderComponent, verdict{0, "left", v1alpha1.ReasonIdle, true, false}, false, "", false},
		"none sleeps while a canary is held":               {"15m", lease(time.Hour), told("False", v1alpha1.ReasonActive), workload.ProviderComponent, verdict{2, "left", v1alpha1.ReasonActive, true, true}, false, "Held", false},
		"one whose rollout was aborted may sleep":          {"15m", lease(time.Hour), told("False", v1alpha1.ReasonActive), workload.ProviderComponent, verdict{0, "left", v1alpha1.ReasonIdle, true, false}, false, "Aborted", false},
		"one that is changed while it sleeps sleeps on":    {"15m", lease(time.Hour), told("True", v1alpha1.ReasonIdle), workload.ProviderComponent, verdict{0, "left", v1alpha1.ReasonIdle, true, false}, false, "Starting", false},
		"a request wakes it":                               {"15m", lease(time.Second), told("True", v1alpha1.ReasonIdle), workload.ProviderComponent, verdict{2, "left", v1alpha1.ReasonWaking, true, true}, false, "", false},
		"one that is not to sleep any more wakes":          {"", lease(time.Hour), told("True", v1alpha1.ReasonIdle), workload.ProviderComponent, verdict{2, "pruned", "", false, false}, false, "", false},
		"what cannot be read is as if it were not":         {"soon", lease(time.Hour), told("True", v1alpha1.ReasonIdle), workload.ProviderComponent, verdict{2, "pruned", "", false, false}, false, "", false},
		"none does where the installation does not let it": {after: "15m", provider: workload.ProviderComponent, without: true, want: verdict{2, "left", v1alpha1.ReasonDormancyUnsupported, false, false}},
		"none does whose frontend may write no Lease":      {after: "15m", provider: workload.ProviderComponent, noToken: true, want: verdict{2, "left", v1alpha1.ReasonDormancyUnsupported, false, false}},
		"Grove's graphs do not sleep, and say so":          {after: "15m", provider: workload.ProviderGrove, want: verdict{2, "left", v1alpha1.ReasonDormancyUnsupported, false, false}},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat", Generation: 1}}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
				"Frontend": {ComponentType: v1alpha1.ComponentTypeFrontend}, "decode": {ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(2))},
			}
			if c.after != "" {
				dgd.Annotations = map[string]string{v1alpha1.AnnotationScaleToZeroAfter: c.after}
			}
			if c.noToken {
				dgd.Spec.Services["Frontend"].ExtraPodSpec = &v1alpha1.ExtraPodSpec{PodSpec: &corev1.PodSpec{AutomountServiceAccountToken: new(false)}}
			}
			dgd.Status.ObservedGeneration = 1
			dgd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-20 * time.Hour))}}
			if c.was.Type != "" {
				dgd.Status.Conditions = append(dgd.Status.Conditions, c.was)
			}
			if c.rollout != "" {
				dgd.Status.Rollout = &v1alpha1.RolloutStatus{Phase: c.rollout, Step: "1/2"}
				dgd.Status.Conditions[0].Status = metav1.ConditionFalse
			}
			seen := seenOf(t, dgd, c.provider, "")
			if seen.lease = c.lease; !c.without {
				seen.platform.Activator = "registry.example/dynamo-activator:v1"
			}
			seen.Dormancy = sleeps(dgd, seen, now)
			d := (&Reconciler{}).decide(dgd, seen)
			if d.plan == nil {
				t.Fatal(d.problem)
			}
			got := verdict{Workers: -1, Lease: "left", Again: seen.dormancyAgain() > 0}
			for _, child := range d.plan.Children {
				switch o := child.Object.(type) {
				case *coordinationv1.Lease:
					got.Lease = "made"
				case *v1alpha1.DynamoComponentDeployment:
					if o.Name == "chat-decode" {
						got.Workers = *o.Spec.Replicas
					} else if extra := o.Spec.ExtraPodSpec; extra != nil && extra.PodSpec != nil {
						got.Activate = len(extra.Containers) == 1
					}
				}
			}
			if c.provider == workload.ProviderGrove {
				got.Workers = 2 // in a clique, as without it
			}
			for _, owned := range d.plan.Owned {
				if _, ok := owned.(*coordinationv1.Lease); ok {
					got.Lease = "pruned"
				}
			}
			st := status.Graph(dgd, d.graph, seen.builder, seen.Snapshot, rollout.Step{}, managed.State{}, nil, metav1.NewTime(now))
			if condition := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionDormant); condition != nil {
				got.Reason = condition.Reason
				if (condition.Status == metav1.ConditionTrue) != (c.want.Workers == 0) {
					t.Errorf("Dormant is %s", condition.Status)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if n := dgd.Spec.Services["decode"].Replicas; *n != 2 || d.plan.OwnerPatch != nil {
				t.Errorf("the graph asks for %d replicas, and is changed by %v", *n, d.plan.OwnerPatch)
			}
		})
	}
}

// TestTheLeaseDeclaresTheModelsOfWorkers: a graph that is changed while it sleeps is asked
// for what it never served.
func TestTheLeaseDeclaresTheModelsOfWorkers(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for rule, c := range map[string]struct {
		args     []string
		declared string // on the Lease
		want     any    // what is written; nil for nothing
	}{
		"what is served under a name of its own":     {args: []string{"--model", "/models/qwen", "--served-model-name", "qwen"}, want: `["qwen"]`},
		"what is served under the name of its files": {args: []string{"--model", "Qwen/Qwen3-0.6B"}, want: `["Qwen/Qwen3-0.6B"]`},
		"another than before":                        {args: []string{"--model=b"}, declared: `["a"]`, want: `["b"]`},
		"nothing is written twice":                   {args: []string{"--model", "a"}, declared: `["a"]`},
		"what only the container can tell is not":    {args: []string{"--model", "$(MODEL)"}},
		"what is not told any more":                  {declared: `["a"]`, want: `[]`},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "lab", Name: "chat", Generation: 1, Annotations: map[string]string{v1alpha1.AnnotationScaleToZeroAfter: "15m"},
			}}
			dgd.Spec.BackendFramework = "vllm"
			main := &corev1.Container{Image: "vllm-runtime:0.8.0", Command: []string{"python3", "-m", "dynamo.vllm"}, Args: c.args}
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
				"Frontend": {ComponentType: v1alpha1.ComponentTypeFrontend},
				"decode":   {ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(2)), ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: main}},
			}
			dgd.Status.ObservedGeneration = 1
			dgd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}}
			seen := seenOf(t, dgd, workload.ProviderComponent, "")
			seen.platform.Activator = "registry.example/dynamo-activator:v1"
			seen.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: graph.ActivationName("chat"), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
			if c.declared != "" {
				seen.lease.Annotations = map[string]string{v1alpha1.AnnotationActivationDeclared: c.declared}
			}
			seen.Dormancy = sleeps(dgd, seen, now)
			d := (&Reconciler{}).decide(dgd, seen)
			if d.plan == nil {
				t.Fatal(d.problem)
			}
			var got any
			for _, p := range d.plan.Patches {
				if p.Object == graph.Object(seen.lease) {
					got = p.Fields["metadata"].(map[string]any)["annotations"].(map[string]any)[v1alpha1.AnnotationActivationDeclared]
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("declared (-want +got):\n%s", diff)
			}
		})
	}
}
