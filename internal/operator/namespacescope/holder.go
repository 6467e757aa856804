package namespacescope

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,roleName=dynamo-operator-namespace-scope
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=dynamo-operator-namespace-scope,verbs=get;update,roleName=dynamo-operator-namespace-scope
// +kubebuilder:rbac:groups=nvidia.com,resources=namespacescopes,verbs=hold,roleName=dynamo-operator-namespace-scope
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=dynamo-cluster-scope,verbs=get;update,namespace=kube-system,roleName=dynamo-operator-cluster-scope
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=kube-system,roleName=dynamo-operator-cluster-scope

// Times are how a Lease is held.
type Times struct {
	// Duration is how long others wait for a renewal, Renew how often there is one.
	Duration, Renew time.Duration
	// Retry is how often an attempt is made that has not succeeded.
	Retry time.Duration
	// HandOver is how long after it was given the Lease a holder begins.
	HandOver time.Duration
}

// deadline is how long a holder goes on that cannot renew. The rest of the duration
// is for what it had sent until then.
func (t Times) deadline() time.Duration { return t.Duration * 2 / 3 }

// Holder holds one Lease, or waits for it.
type Holder struct {
	Direct   client.Client
	Lease    types.NamespacedName
	Identity Identity
	Times    Times
	Clock    clock.WithTickerAndDelayedExecution
	// Begin is called whenever the holder may write from now on.
	Begin func()

	once sync.Once
	term *Term
	// dying is the proof that the namespace is being deleted: nobody can be given
	// the Lease any more, and nothing can be made there, but what is there has to go.
	dying *Term

	mu    sync.Mutex
	seen  Seen
	rival string
	// refused is whether we have no right to the Lease.
	refused bool
	told    string
}

func (h *Holder) init() {
	h.once.Do(func() {
		h.term = &Term{Lease: h.Lease.String(), Deadline: h.Times.deadline(), Clock: h.Clock}
		h.dying = &Term{Lease: h.Lease.String(), Deadline: ViewAge, Clock: h.Clock}
	})
}

// Run holds the Lease until ctx ends, whatever becomes of it meanwhile. It does not
// give it back: see Release.
func (h *Holder) Run(ctx context.Context) error {
	h.init()
	var begun context.Context // of the term that Begin was told of
	for {
		err := h.attempt(ctx)
		h.tell(ctx, err)
		if GuardSeparate.Off() && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return err
		}
		// A term that lapsed while nobody looked, as when the process was stopped, is
		// another one: work was turned away meanwhile and has to be woken.
		if _, not := h.Left(); not != nil {
			begun = nil
		} else if term := h.Context(); term != begun {
			begun = term
			if h.Begin != nil {
				h.Begin()
			}
		}
		select {
		case <-h.Clock.After(h.wait(err)):
		case <-ctx.Done():
			return nil
		}
	}
}

// wait is how long until there is something to do.
func (h *Holder) wait(err error) time.Duration {
	if err != nil {
		return h.Times.Retry
	}
	if left := h.handOver(); left > 0 {
		return min(left, h.Times.Renew)
	}
	return h.Times.Renew
}

// handOver is how much of that time is left.
func (h *Holder) handOver() time.Duration {
	if GuardHandOver.Off() {
		return 0
	}
	return h.Times.HandOver - h.term.Lasting()
}

// Left is for how long the holder may write now without another renewal.
func (h *Holder) Left() (time.Duration, error) {
	h.init()
	if left, err := h.dying.Left(); err == nil {
		return left, nil
	}
	left, err := h.term.Left()
	if err != nil {
		return 0, err
	}
	if wait := h.handOver(); wait > 0 {
		return 0, fmt.Errorf("%w: Lease %s is held since %s, others may write for another %s", ErrNotWriter, h.Lease, h.term.Lasting(), wait)
	}
	return left, nil
}

// Context ends when the Lease is lost.
func (h *Holder) Context() context.Context {
	h.init()
	if _, err := h.dying.Left(); err == nil {
		return h.dying.Context()
	}
	return h.term.Context()
}

// Rival is another operator that was seen to renew the Lease; empty if there is none.
func (h *Holder) Rival() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rival
}

// Refused reports whether the API server lets us have the Lease at all.
func (h *Holder) Refused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// attempt asks for the Lease, or for its renewal.
func (h *Holder) attempt(ctx context.Context) error {
	err := h.ask(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	return err
}

func (h *Holder) ask(ctx context.Context) error {
	// One attempt that hangs must not keep us from the next.
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, h.Times.deadline()/2))
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := h.Direct.Get(ctx, h.Lease, lease)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read Lease %s: %w", h.Lease, err)
	}
	if !missing {
		if err := h.free(lease); err != nil {
			return err
		}
	}
	began := h.Clock.Now()
	if missing {
		err = h.Direct.Create(ctx, h.fill(lease, began))
	} else {
		err = h.Direct.Update(ctx, h.fill(lease, began))
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		h.dying.Renewed(began)
	}
	if err != nil {
		return fmt.Errorf("renew Lease %s: %w", h.Lease, err)
	}
	h.mu.Lock()
	h.rival = ""
	h.mu.Unlock()
	h.term.Renewed(began)
	return nil
}

// held says who else holds the Lease.
type held struct {
	lease types.NamespacedName
	by    string
}

func (e held) Error() string { return fmt.Sprintf("Lease %s is held by %s", e.lease, e.by) }

// free looks whether the Lease is ours to take, by our clock and by who had it.
func (h *Holder) free(lease *coordinationv1.Lease) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Clock.Now()
	h.seen = h.seen.see(lease, now)
	s := h.seen
	switch {
	case s.Holder == h.Identity.Holder, s.Identity == Identity{}:
		return nil
	case s.ElectedBy != "" && s.ElectedBy == h.Identity.ElectedBy:
		return nil // it has ended, or we would not be here
	case s.Live(now):
		if s.changed {
			h.rival = s.Who()
		}
		return held{h.Lease, s.Holder}
	case s.Holder == "" && now.Before(s.Until()):
		return held{h.Lease, "nobody, but the replicas of " + s.ElectedBy + " come first"}
	default:
		return nil
	}
}

// fill writes our claim into a Lease.
func (h *Holder) fill(lease *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(now)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != h.Identity.Holder {
		lease.Spec.AcquireTime = &at
		if lease.ResourceVersion != "" {
			lease.Spec.LeaseTransitions = new(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		}
	}
	lease.Namespace, lease.Name = h.Lease.Namespace, h.Lease.Name
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	if lease.Annotations[AnnotationElectedBy] = h.Identity.ElectedBy; h.Identity.ElectedBy == "" {
		delete(lease.Annotations, AnnotationElectedBy)
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &h.Identity.Holder, &at
	lease.Spec.LeaseDurationSeconds = new(int32(h.Times.Duration / time.Second))
	return lease
}

// tell logs what changed, once.
func (h *Holder) tell(ctx context.Context, err error) {
	logger, now := log.FromContext(ctx).WithValues("lease", h.Lease), "held"
	if err != nil {
		now = err.Error()
	}
	if ctx.Err() != nil || now == h.told {
		return
	}
	h.told = now
	other, taken := errors.AsType[held](err)
	switch {
	case err == nil:
		logger.Info("Lease acquired", "holder", h.Identity.Holder, "startsIn", max(0, h.handOver()).String())
	case taken:
		logger.Info("waiting for the Lease, another operator holds it", "holder", other.by)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		logger.Info("namespace is being deleted, its Lease cannot be held any more")
	default:
		logger.Error(err, "Lease renewal failed, retrying")
	}
}

// Release gives the Lease back, if we have it, after the last write: who comes next
// need not wait.
func (h *Holder) Release(ctx context.Context) error {
	h.init()
	_, err := h.term.Left()
	h.term.Lost(errors.New("released"))
	h.dying.Lost(errors.New("released"))
	if err != nil {
		return nil // others may have it already
	}
	lease := &coordinationv1.Lease{}
	if err := h.Direct.Get(ctx, h.Lease, lease); err != nil {
		return client.IgnoreNotFound(err)
	}
	if Read(lease).Holder != h.Identity.Holder {
		return nil
	}
	lease.Spec.HolderIdentity = nil
	switch err := h.Direct.Update(ctx, lease); {
	case err == nil, apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // what somebody else did meanwhile stands
	default:
		return fmt.Errorf("release Lease %s: %w", h.Lease, err)
	}
}
