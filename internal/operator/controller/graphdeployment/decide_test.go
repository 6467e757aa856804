package graphdeployment

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// seenOf is an observation of a graph that runs nowhere yet, as the observer would
// make it.
func seenOf(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, provider workload.Provider, queue string, owned ...graph.Object) observation {
	t.Helper()
	p := config.Default().Platform()
	p.Queue = queue
	g, err := intent(dgd, p.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	return observation{
		Snapshot: snapshot.Snapshot{Taken: time.Unix(1000, 0), Owned: owned},
		graph:    g, platform: p, provider: provider, builder: p.GraphBuilder(dgd, provider),
	}
}

// TestDecide reads no cluster: everything that a decision depends on is in the
// observation.
func TestDecide(t *testing.T) {
	down := errors.New("down")
	component := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat-decode"}}
	type verdict struct {
		Planned, PruneOnly, Finalizer bool
		Owned                         int
		Reason                        string // of the problem
		Provider                      string
	}
	for rule, c := range map[string]struct {
		provider workload.Provider
		queue    string
		owned    []graph.Object
		change   func(*observation)
		want     verdict
	}{
		"a graph is made where it is to run": {provider: workload.ProviderComponent, want: verdict{Planned: true, Provider: "component"}},
		"one that cannot be read writes nothing": {
			provider: workload.ProviderComponent,
			change: func(o *observation) {
				o.graph, o.invalid = nil, fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, "bad")
			},
			want: verdict{Reason: v1alpha1.ReasonValidationFailed},
		},
		"nothing is made from a fact that could not be read": {
			provider: workload.ProviderComponent, change: func(o *observation) { o.unread = down }, want: verdict{Reason: "down"},
		},
		"nor without the queue that pods are scheduled from": {
			provider: workload.ProviderGrove, queue: "gpu", want: verdict{Reason: v1alpha1.ReasonQueueNotFound},
		},
		"with the queue it is": {
			provider: workload.ProviderGrove, queue: "gpu", change: func(o *observation) { o.hasQueue = true }, want: verdict{Planned: true, Provider: "grove"},
		},
		"components are scheduled from no queue": {provider: workload.ProviderComponent, queue: "gpu", want: verdict{Planned: true, Provider: "component"}},
		"a graph that moves is taken down first": {
			provider: workload.ProviderGrove, owned: []graph.Object{component},
			want: verdict{Planned: true, PruneOnly: true, Owned: 1, Reason: v1alpha1.ReasonMigrating, Provider: "grove"},
		},
		"and not at all while it may not be made as it is written": {
			provider: workload.ProviderGrove, owned: []graph.Object{component},
			change: func(o *observation) { o.refused = fault.New(fault.Waiting, "Refused", "no") },
			want:   verdict{Planned: true, PruneOnly: true, Reason: "Refused", Provider: "grove"},
		},
		"what holds data is held": {
			provider: workload.ProviderComponent, change: func(o *observation) { o.claims = []graph.Object{component} },
			want: verdict{Planned: true, Finalizer: true, Provider: "component"},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := chat()
			seen := seenOf(t, dgd, c.provider, c.queue, c.owned...)
			if c.change != nil {
				c.change(&seen)
			}
			d := (&Reconciler{}).decide(dgd, seen)
			got := verdict{Planned: d.plan != nil}
			if d.plan != nil {
				got.PruneOnly, got.Finalizer, got.Owned = d.plan.PruneOnly, d.plan.Finalizer, len(d.plan.Owned)
				got.Provider = d.plan.Annotations[v1alpha1.AnnotationWorkloadProvider]
			}
			if f, known := fault.From(d.problem); known {
				got.Reason = f.Reason
			} else if d.problem != nil {
				got.Reason = d.problem.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAFailureDoesNotHideThatAGraphWasCarriedOut: the status that tells of a failure
// replaces the one by which a graph that is taken over is known.
func TestAFailureDoesNotHideThatAGraphWasCarriedOut(t *testing.T) {
	child := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "chat-decode-0a1b2c3d", Labels: map[string]string{v1alpha1.LabelGeneration: "0a1b2c3d", v1alpha1.LabelComponent: "decode"},
	}}
	for rule, c := range map[string]struct {
		owned  []graph.Object
		change func(*v1alpha1.DynamoGraphDeployment)
		fail   func(*observation)
		want   map[string]string
	}{
		"of one that cannot be read": {
			owned: []graph.Object{child},
			fail:  func(o *observation) { o.graph, o.invalid = nil, errors.New("bad") },
			want:  map[string]string{v1alpha1.AnnotationAdoptedGeneration: "3"},
		},
		"of one that misses a fact": {
			owned: []graph.Object{child},
			fail:  func(o *observation) { o.unread = errors.New("down") },
			want:  map[string]string{v1alpha1.AnnotationAdoptedGeneration: "3"},
		},
		"and it is written once": {
			owned: []graph.Object{child},
			change: func(d *v1alpha1.DynamoGraphDeployment) {
				d.Annotations = map[string]string{v1alpha1.AnnotationAdoptedGeneration: "3"}
			},
			fail: func(o *observation) { o.unread = errors.New("down") },
		},
		"not of one that changed before it was": {
			owned:  []graph.Object{child},
			change: func(d *v1alpha1.DynamoGraphDeployment) { d.Generation = 4 },
			fail:   func(o *observation) { o.unread = errors.New("down") },
		},
		"nor of one that is new": {fail: func(o *observation) { o.unread = errors.New("down") }},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := chat()
			dgd.Generation, dgd.Finalizers = 3, []string{v1alpha1.Finalizer}
			dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: 3, State: v1alpha1.GraphStateSuccessful}
			if c.change != nil {
				c.change(dgd)
			}
			seen := seenOf(t, dgd, workload.ProviderComponent, "", c.owned...)
			seen.platform.Defaults.Running = graph.ReadRunning(dgd, c.owned)
			c.fail(&seen)
			d := (&Reconciler{}).decide(dgd, seen)
			if d.problem == nil {
				t.Error("nothing is wrong")
			}
			if c.want == nil {
				if d.plan != nil {
					t.Errorf("planned %+v", d.plan)
				}
				return
			}
			if diff := cmp.Diff(&apply.Plan{Annotations: c.want, Finalizer: true}, d.plan); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAMirroredNumberIsNoChangeOfAGraphThatWasTakenOver: the write that tells readers what
// adapters ask for makes another generation of the graph, of which nothing else is wanted.
func TestAMirroredNumberIsNoChangeOfAGraphThatWasTakenOver(t *testing.T) {
	for rule, c := range map[string]struct {
		takenOver string
		want      map[string]any
	}{
		"of a graph of ours": {"", map[string]any{"spec": map[string]any{"services": map[string]any{"decode": map[string]any{"replicas": int32(3)}}}}},
		"of one that was taken over": {"1", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationAdoptedGeneration: "2"}},
			"spec":     map[string]any{"services": map[string]any{"decode": map[string]any{"replicas": int32(3)}}},
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mirror(chat(), &graph.Graph{TakenOver: c.takenOver}, map[string]int32{"decode": 3})); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
