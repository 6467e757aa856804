package rollout

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// Order is what a rollout can be told, by the name of its verb.
type Order string

// The orders.
const (
	Pause      Order = "pause"
	Resume     Order = "resume"
	Promote    Order = "promote"
	PromoteAll Order = "promote-all"
	Abort      Order = "abort"
	Retry      Order = "retry"
	Undo       Order = "undo"
)

// Orders are those that the rollout of a graph can be given now.
func Orders(dgd *v1alpha1.DynamoGraphDeployment) []Order {
	r := dgd.Status.Rollout
	if r == nil || dgd.Status.ObservedGeneration != dgd.Generation {
		return nil
	}
	p, _ := policy.Parse(dgd.Annotations)
	var all []Order
	if _, err := underWay(dgd); err == nil {
		step := p.Recorded(r.Step)
		if step > 0 && step <= len(p.Steps) {
			all = append(all, Promote)
		}
		if len(p.Steps) > 0 && step <= len(p.Steps) || heldAfterFailure(r) {
			all = append(all, PromoteAll)
		}
		if !p.Paused {
			all = append(all, Pause)
		}
		all = append(all, Abort)
	}
	if p.Paused {
		all = append(all, Resume)
	}
	if phase := generation.Phase(r.Phase); phase == generation.PhaseAborted || phase == generation.PhaseAborting {
		all = append(all, Retry)
	}
	return append(all, Undo)
}

// Seen is the rollout that somebody looked at when they gave an order.
type Seen struct {
	// Revision is the one that was rolled out, Step the step that it was at.
	Revision int64
	Step     string
}

// Tell gives an order as its verb does, and returns what that prints. An order about
// another rollout or step than the one that was looked at is refused: it was meant for
// what was shown.
func Tell(ctx context.Context, cluster client.WithWatch, key types.NamespacedName, o Order, seen Seen) (said string, err error) {
	t := target{cluster, key.Namespace, key.Name}
	dgd, err := t.graph(ctx)
	if err != nil {
		return "", err
	}
	r := dgd.Status.Rollout
	if r == nil {
		return "", fmt.Errorf("graph %s has no rollout", key.Name)
	}
	if now := (Seen{r.Revision, r.Step}); now != seen {
		return "", fmt.Errorf("the rollout of graph %s has moved on to revision %d, step %q since revision %d, step %q was looked at; look again", key.Name, now.Revision, now.Step, seen.Revision, seen.Step)
	}
	var out strings.Builder
	switch o {
	case Pause:
		err = t.pause(ctx, &out, "true", "paused")
	case Resume:
		err = t.pause(ctx, &out, "", "resumed")
	case Promote:
		err = t.promote(ctx, &out, false)
	case PromoteAll:
		err = t.promote(ctx, &out, true)
	case Abort:
		err = t.abort(ctx, &out)
	case Retry:
		err = t.retry(ctx, &out)
	case Undo:
		err = t.undo(ctx, &out, io.Discard, undoing{})
	default:
		err = fmt.Errorf("a rollout cannot be told to %q", o)
	}
	return strings.TrimSpace(out.String()), err
}
