package namespacescope

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch,roleName=dynamo-operator-manager-cluster

// View is what the operator for the cluster knows of the Leases of namespaces. A
// watch tells of changes at once, but nobody knows how late a watch is. So what is
// known is read again, from the API server itself, while it is needed: nothing is
// written on knowledge that is older than ViewAge.
type View struct {
	// Direct asks the API server.
	Direct client.Reader
	Clock  clock.PassiveClock

	reading sync.Mutex
	mu      sync.Mutex
	known   map[string]entry
	// read is when the last read began that was answered.
	read time.Time
}

type entry struct {
	Seen
	resourceVersion string
}

// Observe takes note of a Lease that a watch told of.
func (v *View) Observe(lease *coordinationv1.Lease) {
	if lease.Name != LeaseName {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.observe(lease)
}

func (v *View) observe(lease *coordinationv1.Lease) {
	was := v.known[lease.Namespace]
	if newer(was.resourceVersion, lease.ResourceVersion) {
		return
	}
	if v.known == nil {
		v.known = map[string]entry{}
	}
	v.known[lease.Namespace] = entry{was.see(lease, v.Clock.Now()), lease.ResourceVersion}
}

// Forget takes note of a Lease that is gone.
func (v *View) Forget(lease *coordinationv1.Lease) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if was, found := v.known[lease.Namespace]; found && lease.Name == LeaseName && !newer(was.resourceVersion, lease.ResourceVersion) {
		delete(v.known, lease.Namespace)
	}
}

// newer reports whether a version is known to be newer than another.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Claim is who holds a namespace.
func (v *View) Claim(ctx context.Context, namespace string) (Seen, error) {
	if _, err := v.fresh(ctx); err != nil {
		return Seen{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[namespace].Seen, nil
}

// Left is for how long a namespace may be written to by the operator for the cluster.
func (v *View) Left(ctx context.Context, namespace string) (time.Duration, error) {
	left, err := v.fresh(ctx)
	if err != nil || namespace == "" || ctx.Value(noting{}) == true {
		return left, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.known[namespace].Seen; s.Live(v.Clock.Now()) {
		return 0, fmt.Errorf("%w: namespace %s is held by %s", ErrNotWriter, namespace, s.Who())
	}
	return left, nil
}

// fresh reads again what is half as old as it may become, and tells for how long it
// is good. To fail is not to be another's: it is tried again.
func (v *View) fresh(ctx context.Context) (time.Duration, error) {
	left := v.left()
	if left > ViewAge/2 || left > 0 && !v.reading.TryLock() {
		return left, nil // or somebody reads just now
	}
	if left <= 0 {
		v.reading.Lock()
	}
	defer v.reading.Unlock()
	if left := v.left(); left > ViewAge/2 {
		return left, nil
	}
	if err := v.reload(ctx); err != nil {
		if left := v.left(); left > 0 {
			return left, nil
		}
		return 0, fmt.Errorf("read the Leases of namespaces: %w", err)
	}
	if left = v.left(); left <= 0 {
		return 0, fmt.Errorf("reading the Leases of namespaces took longer than %s", ViewAge)
	}
	return left, nil
}

func (v *View) left() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.read.IsZero() {
		return 0
	}
	return ViewAge - elapsed(v.read, v.Clock.Now())
}

// reload reads all Leases, as they are and not as a cache has them.
func (v *View) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ViewAge)
	defer cancel()
	began := v.Clock.Now()
	var list coordinationv1.LeaseList
	if err := v.Direct.List(ctx, &list, client.MatchingFields{metav1.ObjectNameField: LeaseName}); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Namespace] = true
		v.observe(&list.Items[i])
	}
	for namespace, was := range v.known {
		// What the watch told of since is newer than the list.
		if !there[namespace] && !newer(was.resourceVersion, list.ResourceVersion) {
			delete(v.known, namespace)
		}
	}
	v.read = began
	return nil
}
