// Package apiversion keeps v1beta1 served exactly while objects can be converted:
// the definitions lead to a converter that can be verified before it is served,
// and it is taken back when conversion does not work. What the original stored as
// v1beta1 is stored anew as v1alpha1. The conversion itself is in package
// core/conversion, and its server in package admission.
package apiversion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	shipped "github.com/dynamo-operator/dynamo-operator/config/crd"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// The right is limited to the definitions that have two versions.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=dynamocomponentdeployments.nvidia.com;dynamographdeploymentrequests.nvidia.com;dynamographdeployments.nvidia.com;dynamographdeploymentscalingadapters.nvidia.com,verbs=get;patch,roleName=dynamo-operator-manager-cluster
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=dynamocomponentdeployments.nvidia.com;dynamographdeploymentrequests.nvidia.com;dynamographdeployments.nvidia.com;dynamographdeploymentscalingadapters.nvidia.com,verbs=patch,roleName=dynamo-operator-manager-cluster

// Unconverted keeps v1beta1 from being served before a conversion was seen to
// work: without, API servers that cannot reach the converter fail every read of
// it, the garbage collector's and those of namespaces' deletion among them.
const Unconverted guard.Guard = "unconverted"

// Timing is how patient a Publisher is.
type Timing struct {
	// Look is how often the definitions are looked at, Retry how soon again after
	// something did not work.
	Look, Retry time.Duration
	// Probe is how long a first conversion may take to work, and Failing how
	// long conversions may fail before v1beta1 is taken back.
	Probe, Failing time.Duration
	// Backoff is how long v1beta1 is not tried again the first time; twice as long
	// each further time, up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
}

// DefaultTiming is that of an operator.
var DefaultTiming = Timing{
	Look: time.Minute, Retry: 2 * time.Second, Probe: 20 * time.Second, Failing: 30 * time.Second,
	Backoff: time.Minute, MaxBackoff: time.Hour,
}

// Publisher leads the definitions to a converter and has v1beta1 served. Every
// replica runs one: what they write is the same.
//
//	unserved --converter reachable--> connected --a conversion worked--> served
//	served   --conversions fail----> unserved, tried again later
//	served by somebody else --conversions fail--> frozen
type Publisher struct {
	// Direct reads and writes past the informers, which may wait for us.
	Direct client.Client
	// Converter is where API servers have objects converted; its authorities come
	// by Trust.
	Converter definition.Converter
	// Serve is whether v1beta1 is wanted at all.
	Serve bool
	// Namespace is one of ours, in which a conversion is tried. Nothing is left there.
	Namespace string
	// Reachable reports whether somebody answers behind the Service. It is nil where
	// we do not convert, and then nothing can be served.
	Reachable func(context.Context) (bool, error)
	Timing    Timing
	Clock     clock.WithTicker
	// Tell is told what keeps v1beta1 from being served when that changes; nothing
	// does if it is empty. Nobody is told if nil.
	Tell func(ctx context.Context, problem string)

	mu      sync.Mutex
	trusted []byte
	wake    chan struct{}
	stored  []string
	again   bool
	// settled is the state of the definitions in which nothing is to be done, and
	// kinds are those that have to be readable as v1beta1 in it.
	settled string
	kinds   []string
	// tried are the authorities that conversions were tried with, failing since when
	// they fail, after when they are tried again.
	tried   string
	failing time.Time
	after   time.Time
	backoff time.Duration
}

// NeedLeaderElection is false: the converter is every replica.
func (p *Publisher) NeedLeaderElection() bool { return false }

// Trust is told the authorities to verify the converter by.
func (p *Publisher) Trust(trusted []byte) {
	p.mu.Lock()
	changed := !bytes.Equal(p.trusted, trusted)
	p.trusted = trusted
	p.mu.Unlock()
	if changed {
		p.Wake()
	}
}

// Wake has the definitions looked at now.
func (p *Publisher) Wake() {
	select {
	case p.waker() <- struct{}{}:
	default:
	}
}

func (p *Publisher) waker() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wake == nil {
		p.wake = make(chan struct{}, 1)
	}
	return p.wake
}

// Recheck has the definitions read as a whole: something about them changed that
// their generation does not tell.
func (p *Publisher) Recheck() {
	p.mu.Lock()
	p.again = true
	p.mu.Unlock()
	p.Wake()
}

// Stored are the definitions of which objects may be stored as v1beta1.
func (p *Publisher) Stored() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored
}

// Start publishes until ctx ends. What mends itself within moments is not told.
func (p *Publisher) Start(ctx context.Context) error {
	said, since := "", time.Time{}
	for {
		wait, problem := p.Timing.Look, ""
		err := p.Publish(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			since = time.Time{}
		default:
			if since.IsZero() {
				since = p.Clock.Now()
			}
			if !errors.Is(err, errWaiting) {
				wait = p.Timing.Retry
			}
			problem = err.Error()
		}
		if problem != said && p.Tell != nil && (problem == "" || p.Clock.Since(since) >= p.Timing.Failing) {
			p.Tell(ctx, problem)
			said = problem
		}
		select {
		case <-p.Clock.After(wait):
		case <-p.waker():
		case <-ctx.Done():
			return nil
		}
	}
}

// Publish does what is to be done now. An error says why v1beta1 is not served, or
// not as it should be.
func (p *Publisher) Publish(ctx context.Context) error {
	p.mu.Lock()
	c := p.Converter
	c.Trusted = p.trusted
	if p.again {
		p.again, p.settled = false, ""
	}
	p.mu.Unlock()
	state, err := p.state(ctx, c)
	if err != nil {
		return err
	}
	if string(c.Trusted) != p.tried { // what failed may work now
		p.tried, p.after = string(c.Trusted), time.Time{}
	}
	switch {
	case state != p.settled:
	case p.waits():
		return p.waiting()
	case p.after.IsZero():
		return p.verify(ctx)
	}
	problem := p.settle(ctx, c)
	if problem == nil {
		p.after = time.Time{}
	}
	if problem == nil || p.waits() {
		p.settled = state // that of before: who writes meanwhile, we among them, has it read once more
	}
	if problem != nil && p.Serve {
		return problem
	}
	return errors.Join(problem, p.verify(ctx))
}

// errWaiting says that nothing is tried for a while.
var errWaiting = errors.New("is not served until a conversion works")

// waits reports whether it is too early to try again.
func (p *Publisher) waits() bool { return p.Clock.Now().Before(p.after) }

func (p *Publisher) waiting() error {
	return fmt.Errorf("%s %w; the next one is tried at %s", v1beta1.SchemeGroupVersion, errWaiting, p.after.UTC().Format(time.RFC3339))
}

// state tells definitions apart by what little can be read of them at little cost.
func (p *Publisher) state(ctx context.Context, c definition.Converter) (string, error) {
	var state strings.Builder
	state.Write(c.Trusted)
	for _, name := range definition.Converted {
		head := &metav1.PartialObjectMetadata{}
		head.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		err := p.Direct.Get(ctx, types.NamespacedName{Name: name}, head)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read definition %s: %w", name, err)
		}
		fmt.Fprintf(&state, "\n%s %s %d", name, head.UID, head.Generation)
	}
	return state.String(), nil
}

func (p *Publisher) settle(ctx context.Context, c definition.Converter) error {
	definitions, err := p.read(ctx)
	if err != nil {
		return err
	}
	var stored []string
	for _, crd := range definitions {
		if definition.StoredAsBeta(crd) {
			stored = append(stored, crd.Name)
		}
	}
	p.mu.Lock()
	p.stored = stored
	p.mu.Unlock()
	p.kinds = nil
	for _, crd := range definitions {
		if e := p.connect(ctx, crd, c); err == nil {
			err = e // one that cannot be led anywhere does not keep the others
		}
		if p.Serve || definition.Served(crd) {
			p.kinds = append(p.kinds, crd.Spec.Names.Kind)
		}
	}
	if err != nil || !p.Serve {
		return err
	}
	return p.serve(ctx)
}

// read reads the definitions as a whole; those without v1beta1 only matter to who
// wants it.
func (p *Publisher) read(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, name := range definition.Converted {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := p.Direct.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
			return nil, fmt.Errorf("read definition %s: %w", name, err)
		}
		switch {
		case definition.HasBeta(crd):
			all = append(all, crd)
		case p.Serve:
			return nil, fmt.Errorf("definition %s has no version %s: install the definitions of this release", name, v1beta1.SchemeGroupVersion.Version)
		}
	}
	return all, nil
}

// ErrUnreachable says that nobody would answer.
var ErrUnreachable = errors.New("no converter is behind the Service yet")

// connect leads a definition to the converter, or, where v1beta1 is not wanted,
// away from it. Before a definition leads there, somebody must answer; a new
// authority is published in any case.
func (p *Publisher) connect(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, c definition.Converter) error {
	if !p.Serve && (p.Reachable == nil || !definition.StoredAsBeta(crd)) {
		// Who applies what it read before a withdrawal has it served by nobody.
		if c.LeadsTo(crd) || !definition.HasConverter(crd) {
			return p.patch(ctx, crd, definition.Withdraw(crd), "withdraw version")
		}
		return nil // somebody else may convert, which verify sees
	}
	if !p.Serve && c.LeadsTo(crd) {
		if err := p.patch(ctx, crd, definition.Suspend(crd), "withdraw version"); err != nil {
			return err
		}
	}
	patch, err := c.Connect(crd)
	if err != nil || patch == nil {
		return err
	}
	if !c.LeadsTo(crd) {
		if reachable, err := p.Reachable(ctx); err != nil || !reachable {
			return errors.Join(err, ErrUnreachable)
		}
	}
	return p.patch(ctx, crd, patch, "connect converter")
}

func (p *Publisher) patch(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, patch definition.Patch, what string) error {
	if patch == nil {
		return nil
	}
	raw, err := patch.JSON()
	if err != nil {
		return err
	}
	if err := p.Direct.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, raw), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("%s of definition %s: %w", what, crd.Name, err)
	}
	log.FromContext(ctx).Info("changed definition", "definition", crd.Name, "change", what, "served", definition.Served(crd))
	return nil
}

// fieldManager is under whose name definitions are written: not that by which
// they are applied, which would take back what is not in the manifest.
const fieldManager = "dynamo-operator-versions"

// serve has v1beta1 served of one definition first, tries a conversion, and only
// then of the others.
func (p *Publisher) serve(ctx context.Context) error {
	definitions, err := p.read(ctx)
	if err != nil {
		return err
	}
	missing := 0
	for _, crd := range definitions {
		if !definition.Served(crd) {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	if p.waits() {
		return p.waiting()
	}
	if reachable, err := p.Reachable(ctx); err != nil || !reachable {
		return errors.Join(err, ErrUnreachable)
	}
	byName, err := shippedDefinitions()
	if err != nil {
		return err
	}
	for n, crd := range definitions { // the adapters' comes first
		if err := p.patch(ctx, crd, definition.Serve(crd, byName[crd.Name]), "serve version"); err != nil {
			return err
		}
		if n > 0 || Unconverted.Off() {
			continue
		}
		if err := p.probe(ctx); err != nil {
			return errors.Join(fmt.Errorf("try a conversion: %w", err), p.withdraw(ctx))
		}
	}
	p.backoff, p.failing = 0, time.Time{}
	return nil
}

// shippedDefinitions are those of this release, by name.
func shippedDefinitions() (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	objects, err := shipped.Objects()
	byName := make(map[string]*apiextensionsv1.CustomResourceDefinition, len(objects))
	for _, object := range objects {
		byName[object.Name] = object
	}
	return byName, err
}

// probe tries a conversion: an object of v1beta1 is created, but for the writing.
func (p *Publisher) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.Timing.Probe)
	defer cancel()
	last := errors.New("not tried")
	for {
		adapter := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"replicas": int64(0), "dgdRef": map[string]any{"name": "conversion", "componentName": "probe"},
		}}}
		adapter.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeploymentScalingAdapter))
		adapter.SetNamespace(p.Namespace)
		adapter.SetName("conversion-probe")
		err := p.Direct.Create(ctx, adapter, client.DryRunAll)
		switch {
		case ctx.Err() != nil:
			return last
		case err == nil || judged(err):
			return nil
		}
		last = err
		select {
		case <-p.Clock.After(500 * time.Millisecond):
		case <-ctx.Done():
			return last
		}
	}
}

// judged reports whether an object was refused for what it says: whoever judges,
// be it a policy of somebody else, has it converted first.
func judged(err error) bool {
	return !apply.ConversionFailed(err) && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "ValidatingAdmissionPolicy") || strings.Contains(err.Error(), "admission webhook")))
}

// verify sees to it that what is served can be read, whoever converts it.
func (p *Publisher) verify(ctx context.Context) error {
	err := p.unreadable(ctx)
	if err == nil {
		p.failing = time.Time{}
		return nil
	}
	now := p.Clock.Now()
	if p.failing.IsZero() {
		p.failing = now
	}
	if now.Sub(p.failing) < p.Timing.Failing || Unconverted.Off() {
		return err
	}
	return errors.Join(err, p.withdraw(ctx))
}

// unreadable is why a kind cannot be read as v1beta1. Each is asked for: where a kind
// has no objects, nothing is converted. An API server that cannot be asked says
// nothing about conversion.
func (p *Publisher) unreadable(ctx context.Context) error {
	for _, kind := range p.kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := p.Direct.List(ctx, list, client.Limit(1)); apply.ConversionFailed(err) {
			return fmt.Errorf("read %s as %s: %w", kind, v1beta1.SchemeGroupVersion, err)
		}
	}
	return nil
}

// withdraw takes v1beta1 back. The definitions go on leading to our converter, for
// what is stored as v1beta1 and to try again; somebody else's is not tried again.
func (p *Publisher) withdraw(ctx context.Context) error {
	change := definition.Withdraw
	if p.Serve {
		change = definition.Suspend
		p.backoff = min(max(p.Timing.Backoff, 2*p.backoff), p.Timing.MaxBackoff)
		p.after, p.failing = p.Clock.Now().Add(p.backoff), time.Time{}
	}
	definitions, err := p.read(ctx)
	if err != nil {
		return err
	}
	for _, crd := range definitions {
		if err := p.patch(ctx, crd, change(crd), "withdraw version"); err != nil {
			return err
		}
	}
	return nil
}
