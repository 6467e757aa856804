package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Plan is everything that a reconcile writes for an owner, but for its status.
type Plan struct {
	// Finalizer says whether the owner has our finalizer. Earlier operators put it on
	// every object, and it would hold deletion up for ever.
	Finalizer bool
	// Annotations are decisions that have to stand on the owner before anything is
	// made by them: a cache that is behind shows no child, and they would be made
	// anew.
	Annotations map[string]string
	// NoAnnotations are keys that are not to stand there.
	NoAnnotations []string
	// Released are objects that the garbage collector is to leave: the finalizer, which
	// has to be there before, decides what becomes of them.
	Released []graph.Object
	// OwnerPatch are single fields of the owner that change. With metadata they say
	// something of the owner as it was seen, and are not written to another.
	OwnerPatch map[string]any
	// Children are to exist. What is in Owned and not among them is removed.
	Children []graph.Desired
	Owned    []graph.Object
	// PruneOnly makes and changes no child: what is to be removed has to go first.
	PruneOnly bool
	// Patches change single fields of children that stay as they are otherwise.
	Patches []ChildPatch
	// Scale sets the replicas of objects that others made from children.
	Scale []workload.Rescaling
}

// Note is a plan that writes annotations of an owner and nothing else; nil where there
// are none.
func Note(owner graph.Object, annotations map[string]string) *Plan {
	if annotations == nil {
		return nil
	}
	return &Plan{Annotations: annotations, Finalizer: slices.Contains(owner.GetFinalizers(), v1alpha1.Finalizer)}
}

// ChildPatch is a change of single fields of a child. It counts for the child that was
// seen: one that has changed since is left for the next reconcile.
type ChildPatch struct {
	Object graph.Object
	Fields map[string]any
}

// Apply carries out a plan, in the order in which its parts need each other:
//
//	finalizer and annotations --> released objects --> other fields of the owner --> children --> patches, scale
//
// Nothing follows if the first fails, or once the owner is found to go, and the
// error says so then: see OwnerDeleted. Of the rest one failure does not keep the
// others from being written. What comes back are the changes of children.
func (a *Applier) Apply(ctx context.Context, owner graph.Object, plan Plan) (ChangeSet, error) {
	p := &run{Applier: a, owner: owner}
	defer p.log(ctx)
	if err := p.prepareOwner(ctx, plan); err != nil {
		return nil, err
	}
	if err := p.ReleaseFromOwner(ctx, owner, plan.Released); err != nil {
		return nil, err
	}
	var patchErr error
	if len(plan.OwnerPatch) > 0 {
		patchErr = p.patchAsSeen(ctx, plan.OwnerPatch)
	}
	syncErr := p.sync(ctx, plan)
	if OwnerDeleted(syncErr) {
		return p.changes, syncErr
	}
	errs := []error{syncErr, patchErr}
	for _, patch := range plan.Patches {
		errs = append(errs, p.patchChild(ctx, patch))
	}
	for _, s := range plan.Scale {
		errs = append(errs, p.scale(ctx, s.Object, s.Replicas))
	}
	return p.changes, errors.Join(errs...)
}

// patchAsSeen changes single fields of the owner, with metadata only as it was seen.
func (p *run) patchAsSeen(ctx context.Context, fields map[string]any) error {
	metadata, told := fields["metadata"].(map[string]any)
	if told {
		fields, metadata = maps.Clone(fields), maps.Clone(metadata)
		metadata["resourceVersion"] = p.owner.GetResourceVersion()
		fields["metadata"] = metadata
	}
	_, err := p.patchOwner(ctx, fields)
	if told && apierrors.IsConflict(err) {
		return nil // the event of its change brings the next reconcile
	}
	return err
}

// ErrOwnerChanged says that an owner is not any more what was decided about, and
// that nothing was written. The informer is behind, which is no failure.
var ErrOwnerChanged = errors.New("changed since it was seen")

// ErrOwnerUnwritten says that the finalizer and the annotations of an owner could not be
// written, and that nothing else was.
var ErrOwnerUnwritten = errors.New("write finalizer and annotations")

// prepareOwner writes the finalizer and the annotations, unless they are as they are
// to be. The list of finalizers is replaced as a whole, and annotations may tell what
// was done before, so they must be those that were seen.
func (p *run) prepareOwner(ctx context.Context, plan Plan) error {
	metadata, annotations := map[string]any{}, map[string]any{}
	finalizers := slices.DeleteFunc(slices.Clone(p.owner.GetFinalizers()), func(f string) bool { return f == v1alpha1.Finalizer })
	if plan.Finalizer {
		finalizers = append(finalizers, v1alpha1.Finalizer)
	}
	if len(finalizers) != len(p.owner.GetFinalizers()) {
		metadata["finalizers"] = finalizers
	}
	for key, value := range plan.Annotations {
		if written, found := p.owner.GetAnnotations()[key]; !found || written != value {
			annotations[key] = value
		}
	}
	for _, key := range plan.NoAnnotations {
		if _, found := p.owner.GetAnnotations()[key]; found {
			annotations[key] = nil
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if len(metadata) == 0 {
		return nil
	}
	metadata["resourceVersion"] = p.owner.GetResourceVersion()
	patched, err := p.patchOwner(ctx, map[string]any{"metadata": metadata})
	switch {
	case err == nil:
		p.owner = patched // what was seen, with what was decided
		return nil
	case apierrors.IsNotFound(err):
		return ownerDeleted(p.owner)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ErrOwnerChanged, err)
	default:
		return fmt.Errorf("%w: %w", ErrOwnerUnwritten, err)
	}
}

// Release takes our finalizer off an object that is being deleted.
func (a *Applier) Release(ctx context.Context, object graph.Object) error {
	if _, err := a.Apply(ctx, object, Plan{}); !OwnerDeleted(err) {
		return err
	}
	return nil
}

// sync writes the children and removes those that are not wanted.
func (p *run) sync(ctx context.Context, plan Plan) error {
	var err error
	if !plan.PruneOnly {
		if err = p.ensureAll(ctx, plan.Children); OwnerDeleted(err) {
			return err
		}
	}
	return errors.Join(err, p.prune(ctx, plan.Children, plan.Owned))
}

// log says what was written, and nothing if nothing was.
func (p *run) log(ctx context.Context) {
	var written []string
	for _, c := range append(p.others, p.changes...) {
		if c.Action != Awaited && c.Action != Postponed {
			written = append(written, c.String())
		}
	}
	if len(written) > 0 {
		logr.FromContextOrDiscard(ctx).Info("reconciled", "written", written)
	}
}
