package rollout

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	judge "github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

func pauseCommand() *cobra.Command {
	return verb("pause", "Stop a rollout where it is; healing and scaling go on", "", func(ctx context.Context, t target, out, _ io.Writer) error {
		return t.pause(ctx, out, "true", "paused")
	})
}

func resumeCommand() *cobra.Command {
	return verb("resume", "Let a paused rollout go on", "", func(ctx context.Context, t target, out, _ io.Writer) error {
		return t.pause(ctx, out, "", "resumed")
	})
}

// pause is for rollouts to come as well, so it needs none.
func (t target) pause(ctx context.Context, out io.Writer, value, done string) error {
	dgd, err := t.graph(ctx)
	if err != nil {
		return err
	}
	if err := t.annotate(ctx, dgd, map[string]string{v1alpha1.AnnotationRolloutPaused: value}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", t.name, done)
	return nil
}

func promoteCommand() *cobra.Command {
	var all bool
	command := verb("promote", "Let a rollout pass the step that it is at", "", func(ctx context.Context, t target, out, _ io.Writer) error {
		return t.promote(ctx, out, all)
	})
	command.Flags().BoolVar(&all, "all", false, "pass all steps that are left")
	return command
}

func (t target) promote(ctx context.Context, out io.Writer, all bool) error {
	dgd, err := t.graph(ctx)
	if err != nil {
		return err
	}
	r, err := underWay(dgd)
	if err != nil {
		return err
	}
	p, _ := policy.Parse(dgd.Annotations)
	step := p.Recorded(r.Step)
	switch {
	case all && heldAfterFailure(r):
		// What failed is let pass, with steps or without.
	case len(p.Steps) == 0:
		return fmt.Errorf("graph %s has no steps to promote: %s is not set", t.name, v1alpha1.AnnotationRolloutSteps)
	case step > len(p.Steps):
		return fmt.Errorf("graph %s is past its steps already", t.name)
	case step == 0 && !all:
		return fmt.Errorf("graph %s does not tell the step that it is at yet; try again, or promote all", t.name)
	}
	promotion := policy.Promotion{Generation: r.Target, Step: step, All: all}
	if err := t.annotate(ctx, dgd, map[string]string{v1alpha1.AnnotationRolloutPromote: promotion.String()}); err != nil {
		return err
	}
	passes := fmt.Sprintf("step %d of %d", step, len(p.Steps))
	if all {
		passes = "all steps"
	}
	fmt.Fprintf(out, "%s: generation %s may pass %s\n", t.name, r.Target, passes)
	return nil
}

// heldAfterFailure reports whether a candidate failed, and waits for somebody to look at it.
func heldAfterFailure(r *v1alpha1.RolloutStatus) bool {
	failures := []judge.AbortReason{judge.AbortDeadline, judge.AbortCrashed, judge.AbortRegression}
	return generation.Phase(r.Phase) == generation.PhaseHeld && slices.Contains(failures, judge.AbortReason(r.Reason))
}

func abortCommand() *cobra.Command {
	return verb("abort", "Go back to the stable generation; the spec stays, and is not tried again", "", func(ctx context.Context, t target, out, _ io.Writer) error {
		return t.abort(ctx, out)
	})
}

func (t target) abort(ctx context.Context, out io.Writer) error {
	dgd, err := t.graph(ctx)
	if err != nil {
		return err
	}
	r, err := underWay(dgd)
	if err != nil {
		return err
	}
	if err := t.annotate(ctx, dgd, map[string]string{v1alpha1.AnnotationRolloutAbort: r.Target, v1alpha1.AnnotationRolloutRetry: ""}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: generation %s is to be aborted\n", t.name, r.Target)
	return nil
}

// underWay is the rollout to give an order about. It has to be one of the spec that
// was read: an order names a generation, and must not hit what came after it.
func underWay(dgd *v1alpha1.DynamoGraphDeployment) (*v1alpha1.RolloutStatus, error) {
	r := dgd.Status.Rollout
	switch {
	case dgd.Status.ObservedGeneration != dgd.Generation:
		return nil, fmt.Errorf("the operator has not seen the last change of graph %s yet; try again", dgd.Name)
	case r == nil:
		return nil, fmt.Errorf("graph %s has no rollout", dgd.Name)
	}
	switch generation.Phase(r.Phase) {
	case generation.PhaseCompleted:
		return nil, fmt.Errorf("the rollout of graph %s is completed", dgd.Name)
	case generation.PhaseAborting, generation.PhaseAborted:
		return nil, fmt.Errorf("the rollout of graph %s is aborted", dgd.Name)
	}
	return r, nil
}

func retryCommand() *cobra.Command {
	return verb("retry", "Try an aborted spec again", "", func(ctx context.Context, t target, out, _ io.Writer) error {
		return t.retry(ctx, out)
	})
}

func (t target) retry(ctx context.Context, out io.Writer) error {
	dgd, err := t.graph(ctx)
	if err != nil {
		return err
	}
	r := dgd.Status.Rollout
	if r == nil || generation.Phase(r.Phase) != generation.PhaseAborted && generation.Phase(r.Phase) != generation.PhaseAborting {
		return fmt.Errorf("no rollout of graph %s was aborted", t.name)
	}
	all, err := t.revisions(ctx, dgd)
	if err != nil {
		return err
	}
	aborted := revision.Numbered(all, r.Revision)
	if aborted == nil || revision.Generation(aborted) == "" {
		return fmt.Errorf("the aborted revision %d of graph %s is not there any more; change the spec instead", r.Revision, t.name)
	}
	id := revision.Generation(aborted)
	if err := t.annotate(ctx, dgd, map[string]string{v1alpha1.AnnotationRolloutRetry: id, v1alpha1.AnnotationRolloutAbort: ""}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: generation %s is to be tried again\n", t.name, id)
	return nil
}
