package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

func TestOrdersThatMakeSense(t *testing.T) {
	for rule, c := range map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment)
		want   []Order
	}{
		"a step that waits can be passed":        {func(*v1alpha1.DynamoGraphDeployment) {}, []Order{Promote, PromoteAll, Pause, Abort, Undo}},
		"past the steps nothing is promoted":     {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Step = "all" }, []Order{Pause, Abort, Undo}},
		"a step that is not told is not passed":  {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Step = "" }, []Order{PromoteAll, Pause, Abort, Undo}},
		"without steps nothing is promoted":      {func(d *v1alpha1.DynamoGraphDeployment) { delete(d.Annotations, v1alpha1.AnnotationRolloutSteps) }, []Order{Pause, Abort, Undo}},
		"what is paused is resumed":              {func(d *v1alpha1.DynamoGraphDeployment) { d.Annotations[v1alpha1.AnnotationRolloutPaused] = "true" }, []Order{Promote, PromoteAll, Abort, Resume, Undo}},
		"what is completed can be undone":        {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Phase = "Completed" }, []Order{Undo}},
		"what is aborted can be tried again":     {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Phase = "Aborted" }, []Order{Retry, Undo}},
		"what the operator has not seen waits":   {func(d *v1alpha1.DynamoGraphDeployment) { d.Generation = 5 }, nil},
		"a graph without a rollout takes no one": {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout = nil }, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decoded(t)
			c.change(dgd)
			if diff := cmp.Diff(c.want, Orders(dgd)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTellDoesWhatTheVerbsDo(t *testing.T) {
	seen := Seen{Revision: 8, Step: "2/2"}
	for rule, c := range map[string]struct {
		order  Order
		seen   Seen
		phase  string
		want   map[string]string
		undone bool
		fails  bool
	}{
		"pause":       {order: Pause, seen: seen, want: map[string]string{v1alpha1.AnnotationRolloutPaused: "true"}},
		"promote":     {order: Promote, seen: seen, want: map[string]string{v1alpha1.AnnotationRolloutPromote: "3fa91c02/2"}},
		"promote all": {order: PromoteAll, seen: seen, want: map[string]string{v1alpha1.AnnotationRolloutPromote: "3fa91c02/all"}},
		"abort":       {order: Abort, seen: seen, want: map[string]string{v1alpha1.AnnotationRolloutAbort: "3fa91c02"}},
		"retry":       {order: Retry, seen: seen, phase: "Aborted", want: map[string]string{v1alpha1.AnnotationRolloutRetry: "3fa91c02"}},
		"resume":      {order: Resume, seen: seen},
		"undo":        {order: Undo, seen: seen, undone: true},
		"an order for a step that has passed is refused":      {order: Promote, seen: Seen{Revision: 8, Step: "1/2"}, fails: true},
		"an order for a rollout that has gone is refused":     {order: Abort, seen: Seen{Revision: 7, Step: "2/2"}, fails: true},
		"an order that nobody knows is refused":               {order: "restart", seen: seen, fails: true},
		"an order that makes no sense is refused as the verb": {order: Retry, seen: seen, fails: true},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decoded(t)
			if c.phase != "" {
				dgd.Status.Rollout.Phase = c.phase
			}
			to := aim(append(revisions(t, dgd, revision.Aborted), dgd)...)
			said, err := Tell(t.Context(), to.WithWatch, types.NamespacedName{Namespace: "llm", Name: "chat"}, c.order, c.seen)
			if (err != nil) != c.fails || (said == "") != c.fails {
				t.Errorf("%q, %v", said, err)
			}
			got, err := to.graph(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if undone := *got.Spec.Services["decode"].Replicas == 3; undone != c.undone {
				t.Errorf("the spec was undone: %v", undone)
			}
			var changed map[string]string
			for _, key := range []string{v1alpha1.AnnotationRolloutPaused, v1alpha1.AnnotationRolloutPromote, v1alpha1.AnnotationRolloutAbort, v1alpha1.AnnotationRolloutRetry} {
				if value := got.Annotations[key]; value != "" {
					if changed == nil {
						changed = map[string]string{}
					}
					changed[key] = value
				}
			}
			if diff := cmp.Diff(c.want, changed); diff != "" {
				t.Error(diff)
			}
		})
	}
}
