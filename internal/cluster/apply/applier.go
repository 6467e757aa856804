// Package apply is the only writer of children. It brings the objects that one
// owner wants into the cluster by server-side apply and removes those it no
// longer wants. It sends nothing when nothing would change, touches no field
// that others manage, never takes over or deletes an object of another owner,
// and makes nothing for an owner whose deletion has begun. It does not know
// what the objects mean.
package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/adoption"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/manifest"
)

// FieldManager is the name under which the API server records our fields.
const FieldManager = "dynamo-operator"

// Applier writes children. Reads come from the client's informer cache.
type Applier struct {
	// OnWrite is told of every write that the server took, if there is one.
	OnWrite func(Change)

	client client.Client
	direct client.Reader
	// partiallyCached are kinds of which the cache holds neither all objects nor all of
	// each: that it has none proves nothing, and nor does what it has.
	partiallyCached map[schema.GroupVersionKind]bool
	writes          writeLog
}

// New makes an Applier over a client whose reads are cached, except in part for
// some kinds, and a reader that asks the API server itself.
func New(cached client.Client, direct client.Reader, partly ...client.Object) (*Applier, error) {
	a := &Applier{client: cached, direct: direct, partiallyCached: map[schema.GroupVersionKind]bool{}}
	for _, object := range partly {
		kind, err := manifest.Kind(object, cached.Scheme())
		if err != nil {
			return nil, err
		}
		a.partiallyCached[kind] = true
	}
	return a, nil
}

// run is one plan for one owner.
type run struct {
	*Applier
	owner graph.Object
	// present is the owner, once the server has said that it is there to stay.
	present *metav1.PartialObjectMetadata
	// taken is the name of the object in turn that takes a change.
	taken string
	// changes are those of children, others those of the owner and of what others
	// made from children.
	changes, others ChangeSet
}

// ensureAll writes children. One object's failure does not keep the others from
// being written; the errors come back joined. Once the owner is found to go,
// nothing more is done and the error says so.
func (p *run) ensureAll(ctx context.Context, wanted []graph.Desired) error {
	var errs []error
	for _, w := range wanted {
		id, err := p.identify(w.Object)
		if err != nil {
			return err
		}
		action, err := p.ensure(ctx, w, id)
		if OwnerDeleted(err) {
			return err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("apply %s: %w", id, err))
		}
		if action != "" {
			p.changed(action, id)
		}
	}
	return errors.Join(errs...)
}

func (p *run) prune(ctx context.Context, wanted []graph.Desired, owned []graph.Object) error {
	var errs []error
	keep := make(map[identity]bool, len(wanted))
	for _, w := range wanted {
		id, err := p.identify(w.Object)
		if err != nil {
			return err
		}
		keep[id] = true
	}
	for _, object := range owned {
		id, err := p.identify(object)
		if err != nil {
			return err
		}
		if keep[id] || object.GetDeletionTimestamp() != nil || (!graph.MadeFor(object, p.owner) && !Ownership.Off()) {
			continue
		}
		// The event of its change is on the way and brings the next reconcile.
		if same, err := p.ownerAsSeen(ctx); err != nil || !same {
			return errors.Join(append(errs, err)...)
		}
		if err := p.remove(ctx, object, id); err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", id, err))
			continue
		}
		p.changed(Deleted, id)
	}
	return errors.Join(errs...)
}

func (p *run) changed(action Action, id identity) {
	change := Change{action, id.kind, id.key}
	p.changes = append(p.changes, change)
	if action != Awaited && action != Postponed {
		p.tell(change)
	}
}

func (a *Applier) tell(change Change) {
	if a.OnWrite != nil {
		a.OnWrite(change)
	}
}

// ensure writes one object if it has to, and says what that did.
func (p *run) ensure(ctx context.Context, w graph.Desired, id identity) (Action, error) {
	fields, err := manifest.Of(w, p.owner, p.client.Scheme())
	if err != nil {
		return "", err
	}
	payload := &unstructured.Unstructured{Object: fields}
	// Users' annotations reach workloads; that a template was adopted is for adoption to say.
	unstructured.RemoveNestedField(payload.Object, "metadata", "annotations", v1alpha1.AnnotationAdoptedTemplates)
	live, err := p.live(ctx, p.client, id)
	if err == nil && p.doubtful(id, payload, live) {
		live, err = p.live(ctx, p.direct, id)
	}
	switch {
	case err != nil:
		return "", err
	case live == nil:
		if err := p.ownerPresent(ctx); err != nil {
			return "", err
		}
		return p.apply(ctx, w.Ownership, payload, id, nil)
	}
	mine, err := p.claim(ctx, live, w, id)
	switch {
	case err != nil || !mine:
		return "", err
	case w.CreateOnly:
		return p.expand(ctx, payload, live, id)
	}
	if payload, err = retained(payload, live); err != nil {
		return "", err
	}
	if w.UpdatePolicy == graph.UpdateNever || (w.UpdatePolicy == graph.UpdateOneAtATime && p.taken != "" && p.taken != id.key.Name) {
		return p.postpone(ctx, w, payload, live, id)
	}
	action, err := p.update(ctx, w, payload, live, id)
	if w.UpdatePolicy == graph.UpdateOneAtATime && action != "" && action != Adopted {
		p.taken = id.key.Name
	}
	return action, err
}

// doubtful reports whether only the server knows how an object is. That there is
// none may be because the cache is behind a write of a moment ago, or because
// somebody has deleted it since. Of a kind that the cache holds in part, what it
// has tells no more than whether the object changed since it was last compared.
func (p *run) doubtful(id identity, payload *unstructured.Unstructured, live graph.Object) bool {
	if live == nil {
		return p.partiallyCached[id.kind] || p.writes.covers(id, payload, "")
	}
	return p.partiallyCached[id.kind] && !p.writes.covers(id, payload, live.GetResourceVersion())
}

// update writes an object of ours that exists, if that would change it.
func (p *run) update(ctx context.Context, w graph.Desired, payload *unstructured.Unstructured, live graph.Object, id identity) (Action, error) {
	var done Action
	tie := w.Ownership
	if hasLegacyFields(live) {
		if w.RetainTemplates {
			if err := p.note(ctx, payload, live); err != nil {
				return "", err
			}
		}
		adopted, err := p.adopt(ctx, id, manager(p.owner, tie))
		if err != nil || adopted == nil {
			return "", err
		}
		live, done = adopted, Adopted
		if w.RetainTemplates || adoption.ReadRecord(live.GetAnnotations()) != nil { // or did when it was noted
			if payload, err = p.undisturbed(ctx, manager(p.owner, tie), payload, live); err != nil {
				return "", err
			}
		}
	}
	seen := live.GetResourceVersion()
	if p.writes.covers(id, payload, seen) {
		if done == "" && p.writes.awaits(id, seen) {
			done = Awaited
		}
		return done, nil
	}
	fields, settled, err := p.compare(ctx, w, payload, live, id)
	if err == nil && settled && (p.partiallyCached[id.kind] || untyped(w.Object)) {
		p.writes.record(id, payload, seen, seen) // so that it is not read again
	}
	if err != nil || settled {
		return done, err
	}
	if field := traits[id.kind.GroupKind()].immutableDiff(payload, fields); field != "" {
		return p.replace(ctx, tie, payload, live, id)
	}
	action, err := p.apply(ctx, tie, payload, id, live)
	switch {
	case refusedForGood(err, id) && w.RetainTemplates && traits[id.kind.GroupKind()].ownsPods:
		return done, fault.New(fault.Waiting, v1alpha1.ReasonRejected, "%s was made by another operator and cannot become as ours would be; it goes on as it is until its graph changes: %s", id, serverMessage(err))
	case refusedForGood(err, id):
		return p.replace(ctx, tie, payload, live, id)
	case err != nil || done == "":
		return action, err
	default:
		return done, nil
	}
}

// postpone leaves an object as it is, and says whether it is to change later.
func (p *run) postpone(ctx context.Context, w graph.Desired, payload *unstructured.Unstructured, live graph.Object, id identity) (Action, error) {
	if hasLegacyFields(live) || p.writes.covers(id, payload, live.GetResourceVersion()) {
		return "", nil
	}
	if _, settled, err := p.compare(ctx, w, payload, live, id); err != nil || settled {
		return "", err
	}
	return Postponed, nil
}

// compare returns the fields of an object that exists, and whether it holds what
// is wanted of it. Fields that our Go types do not know are only on the server.
func (p *run) compare(ctx context.Context, w graph.Desired, payload *unstructured.Unstructured, live graph.Object, id identity) (fields map[string]any, same bool, err error) {
	if untyped(w.Object) {
		whole := &unstructured.Unstructured{}
		whole.SetGroupVersionKind(id.kind)
		if live, err = read(ctx, p.direct, id, whole); err != nil || live == nil {
			return nil, err == nil, err // the event of its end is on the way
		}
	}
	if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(live); err != nil {
		return nil, false, err
	}
	owned := ownedFields(live.GetManagedFields(), manager(p.owner, w.Ownership))
	return fields, owned != nil && upToDate(payload.Object, fields, owned), nil
}

// untyped reports whether an object has fields that our Go type for it does not know.
func untyped(object graph.Object) bool {
	_, ok := object.(*unstructured.Unstructured)
	return ok
}

// apply sends a payload for an object that was seen live, or for one that is to
// be made. The server may find that it changes nothing, which is then no change.
func (p *run) apply(ctx context.Context, tie graph.Ownership, payload *unstructured.Unstructured, id identity, live graph.Object) (Action, error) {
	sent, seen := payload.DeepCopy(), ""
	if live != nil {
		// An object that is gone since it was seen is not made again by a
		// change: its owner may be gone with it.
		seen = live.GetResourceVersion()
		sent.SetUID(live.GetUID())
	}
	err := p.send(ctx, sent, id, manager(p.owner, tie))
	switch {
	case ConversionFailed(err):
		return "", fault.New(fault.Waiting, v1alpha1.ReasonConversionUnavailable,
			"somebody wrote %s as another version, and it cannot be changed until a converter answers: %s", id, shortened(err.Error())).Again(conversionRetry)
	case namespaceTerminating(err):
		return "", ownerDeleted(p.owner)
	case seen != "" && (refusedForGood(err, id) || denied(err, id.kind.GroupKind())):
		return "", err
	case apierrors.IsInvalid(err):
		return "", fault.New(fault.Invalid, v1alpha1.ReasonRejected, "the API server refuses it: %s", serverMessage(err))
	case err != nil:
		return "", err
	}
	p.writes.record(id, payload, seen, sent.GetResourceVersion())
	switch seen {
	case "":
		return Created, nil
	case sent.GetResourceVersion():
		return "", nil
	default:
		return Updated, nil
	}
}

// send writes an object. What users write as well is created and never applied:
// see patchOwner.
func (p *run) send(ctx context.Context, sent *unstructured.Unstructured, id identity, manager string) error {
	if !writtenByUsers(id.kind.GroupKind()) {
		return p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(manager), client.ForceOwnership)
	}
	if sent.GetUID() != "" {
		return fmt.Errorf("change %s: what users write is not applied", id)
	}
	return p.client.Create(ctx, sent, client.FieldOwner(manager), client.FieldValidation(metav1.FieldValidationIgnore))
}

// writtenByUsers are the kinds of which users write objects in either version. Of
// those we make ourselves we make each once.
func writtenByUsers(kind schema.GroupKind) bool {
	return kind.Group == v1alpha1.GroupName && kind.Kind != v1alpha1.KindDynamoComponentDeployment
}

// conversionRetry is how soon a write is tried again that needs a converter.
const conversionRetry = 5 * time.Second

// ConversionFailed reports whether the API server could not have an object
// converted. It has no reason of its own for that.
func ConversionFailed(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook for ")
}

// live reads an object; nil means that there is none.
func (a *Applier) live(ctx context.Context, from client.Reader, id identity) (graph.Object, error) {
	empty, err := a.client.Scheme().New(id.kind)
	if err != nil {
		return nil, err
	}
	return read(ctx, from, id, empty.(client.Object))
}

func read(ctx context.Context, from client.Reader, id identity, object client.Object) (graph.Object, error) {
	if err := from.Get(ctx, id.key, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() != nil {
		return nil, fault.New(fault.Waiting, v1alpha1.ReasonChildTerminating,
			"%s is being deleted and will be made again once it is gone", id)
	}
	return object, nil
}

// remove deletes an object that its owner no longer wants, or leaves it to the
// other owners that it has.
func (p *run) remove(ctx context.Context, object graph.Object, id identity) error {
	if !metav1.IsControlledBy(object, p.owner) && len(object.GetOwnerReferences()) > 1 {
		release := &unstructured.Unstructured{}
		release.SetGroupVersionKind(id.kind)
		release.SetNamespace(id.key.Namespace)
		release.SetName(id.key.Name)
		return p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(release), client.FieldOwner(manager(p.owner, graph.OwnershipShared)))
	}
	_, err := p.delete(ctx, object, id)
	return err
}

// identity is the name of one object in the cluster.
type identity struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

func (id identity) String() string {
	return id.kind.Kind + " " + id.key.String()
}

func (a *Applier) identify(object graph.Object) (identity, error) {
	kind, err := manifest.Kind(object, a.client.Scheme())
	if err != nil {
		return identity{}, err
	}
	return identity{kind, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}, nil
}
