package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/status"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/volume"
)

// again is how often something that is missing is looked for without a hint.
const again = 2 * time.Second

// live runs the pod from its first volume to its last container.
func (w *Worker) live(ctx context.Context) {
	defer w.limit()()
	defer w.pressed()()
	if !w.prepare(ctx) {
		return
	}
	keep, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { w.keepVolumes(keep) })
	defer keeper.Wait()
	defer cancel()

	var sidecars []*sidecar
	defer func() {
		// Sidecars serve the others, and each other in their order.
		for _, s := range slices.Backward(sidecars) {
			s.end()
		}
	}()
	spec := w.object().Spec
	for i := range spec.InitContainers {
		c := w.container(&spec.InitContainers[i], role{init: true})
		if status.Sidecar(spec.InitContainers[i]) {
			c.role = role{sidecar: true}
			s := c.accompany()
			sidecars = append(sidecars, s)
			if !s.up(w.stop) {
				return
			}
			continue
		}
		if end := c.live(w.stop); end == nil || end.ExitCode != 0 {
			return
		}
	}
	var apps sync.WaitGroup
	for i := range spec.Containers {
		c := w.container(&spec.Containers[i], role{})
		apps.Go(func() { c.live(w.stop) })
	}
	apps.Wait()
}

// sidecar is a container with an end of its own.
type sidecar struct {
	*container
	cancel context.CancelFunc
	done   chan struct{}
}

func (c *container) accompany() *sidecar {
	stop, cancel := context.WithCancel(context.Background())
	s := &sidecar{container: c, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		c.live(stop)
	}()
	return s
}

// up waits until the sidecar has started; false if the pod stops before.
func (s *sidecar) up(stop context.Context) bool {
	select {
	case <-s.started:
		return true
	case <-stop.Done():
		return false
	}
}

func (s *sidecar) end() {
	s.cancel()
	<-s.done
}

// prepare gives the pod its address, folder, devices and volumes; false if it is stopped
// before it has them.
func (w *Worker) prepare(ctx context.Context) bool {
	var told string
	for w.stop.Err() == nil {
		heard := w.content.heard()
		reason, err := w.furnish(ctx)
		if err == nil {
			break
		}
		if err.Error() != told {
			told = err.Error()
			w.event(nil, corev1.EventTypeWarning, reason, "%s", told)
		}
		select {
		case <-heard:
		case <-w.stop.Done():
		case <-time.After(again):
		}
	}
	if w.stop.Err() != nil {
		return false
	}
	for _, name := range volume.Unsupported(w.object()) {
		w.warn("volume/"+name, nil, "UnsupportedVolume", "Volume %q is of a kind that the local cluster does not know; an empty folder takes its place", name)
	}
	w.mu.Lock()
	w.prepared = true
	w.mu.Unlock()
	w.poke()
	return true
}

// furnish makes one attempt at it; reason is the event's if it fails.
func (w *Worker) furnish(ctx context.Context) (reason string, err error) {
	if err := w.settle(); err != nil {
		return "FailedMount", err
	}
	if err := w.prepareClaims(ctx); err != nil {
		return "FailedPrepareDynamicResources", fmt.Errorf("Failed to prepare dynamic resources: %w", err) //nolint:staticcheck // a kubelet's own words
	}
	return "FailedMount", w.syncVolumes(ctx)
}

// settle gives the pod an address and a folder.
func (w *Worker) settle() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.place == nil {
		a, err := w.host.Addresses.Take(string(w.pod.UID))
		if err != nil {
			return err
		}
		w.place = &a
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return fmt.Errorf("make the pod's folder: %w", err)
	}
	return nil
}

func (w *Worker) syncVolumes(ctx context.Context) error {
	w.laid.Lock()
	defer w.laid.Unlock()
	return w.volumes.Sync(ctx, w.located())
}

// keepVolumes follows the API's content and renews tokens.
func (w *Worker) keepVolumes(ctx context.Context) {
	for {
		heard := w.content.heard()
		var due <-chan time.Time
		w.laid.Lock()
		if at := w.volumes.Due(); !at.IsZero() {
			// A renewal that failed is due already: do not insist too much.
			due = time.After(max(time.Until(at), again))
		}
		w.laid.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-heard:
		case <-due:
		}
		// What cannot be updated stays as it is, as on a real node.
		if err := w.syncVolumes(ctx); err != nil && !errors.Is(err, context.Canceled) {
			klog.V(2).InfoS("Volumes keep their old content", "pod", klog.KObj(w.object()), "err", err)
		}
	}
}

// located is the pod with its addresses, which its own report may not yet hold.
func (w *Worker) located() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pod.DeepCopy()
	pod.Status.HostIP, pod.Status.HostIPs = w.host.HostIP, []corev1.HostIP{{IP: w.host.HostIP}}
	if w.place != nil {
		pod.Status.PodIP, pod.Status.PodIPs = w.place.Paper(), []corev1.PodIP{{IP: w.place.Paper()}}
	}
	return pod
}

// limit stops the pod when its active deadline is over; the result ends the
// limit.
func (w *Worker) limit() func() {
	pod := w.object()
	if pod.Spec.ActiveDeadlineSeconds == nil {
		return func() {}
	}
	at := w.start.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	timer := time.AfterFunc(time.Until(at), func() {
		w.mu.Lock()
		w.reason, w.message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
		w.mu.Unlock()
		w.event(nil, corev1.EventTypeNormal, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
		w.killWithin(graceOf(pod))
		w.stopNow()
		w.poke()
	})
	return func() { timer.Stop() }
}

// pressed evicts the pod once the annotation for it is there; the result ends
// the watch.
func (w *Worker) pressed() func() {
	over := make(chan struct{})
	go func() {
		for {
			changed := w.changed.heard()
			if resource := w.object().Annotations[FaultEvict]; resource != "" {
				w.evict(resource)
				return
			}
			select {
			case <-changed:
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

// evict ends the pod as a node does that runs out of a resource.
func (w *Worker) evict(resource string) {
	message := fmt.Sprintf("The node was low on resource: %s. ", resource)
	w.mu.Lock()
	w.reason, w.message = "Evicted", message
	w.mu.Unlock()
	w.event(nil, corev1.EventTypeWarning, "Evicted", "%s", message)
	w.killWithin(0)
	w.stopNow()
	w.poke()
}

func graceOf(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}
