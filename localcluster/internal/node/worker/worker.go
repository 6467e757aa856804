// Package worker runs one pod.
//
// A Worker is told what the API says of its pod and makes it so: it lays out the
// volumes, plays the containers, asks their probes, restarts what fails and
// reports the status. It never looks at other pods, and never decides which
// pods exist: that is the agent's.
//
//	        prepare            init containers        containers
//	New ──▶ address, volumes ─▶ one after the other ─▶ side by side ─▶ ended
//	            │                (sidecars go on)         │              │
//	            └──────────── stop: deletion, deadline ───┴──────────────┤
//	                                                                     ▼
//	                     leave: deleted, vanished or silenced ──────▶ finished
package worker

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/address"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/process"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/status"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/volume"
)

// API is what a worker writes.
type API interface {
	// PatchStatus sends a strategic merge patch of the pod's status.
	PatchStatus(ctx context.Context, pod *corev1.Pod, patch []byte) (*corev1.Pod, error)
	// Remove deletes the object of this very pod at once.
	Remove(ctx context.Context, pod *corev1.Pod) error
}

// Launcher starts programs.
type Launcher interface {
	Launch(process.Spec) (process.Process, error)
}

// Prober asks containers how they are.
type Prober interface {
	Check(spec *corev1.Probe, c *corev1.Container, host string) error
	Get(get *corev1.HTTPGetAction, c *corev1.Container, host string, timeout time.Duration) error
}

// Claims is what a pod's devices are prepared from.
type Claims interface {
	Claim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error)
	// Prepared tells the API that the devices of a claim are ready for use.
	Prepared(ctx context.Context, claim *resourcev1.ResourceClaim, devices []device.Device) error
}

// Host is what all pods of a node have in common.
type Host struct {
	API       API
	Cluster   volume.Cluster
	Claims    Claims
	Launcher  Launcher
	Prober    Prober
	Addresses *address.Pool
	Events    record.EventRecorder

	Dir    string // of the cluster: pods/ and volumes/ below it
	BinDir string // of the programs that play containers
	HostIP string

	ProxyURL     string
	APIServerURL string
	CAFile       string

	Allocatable corev1.ResourceList
	Backoff     Backoff
}

// Worker runs one pod.
type Worker struct {
	host  *Host
	dir   string
	start metav1.Time

	laid    sync.Mutex // guards volumes
	volumes *volume.Set

	// stop ends the containers, leave ends the worker; leaving implies stopping.
	// kill is when containers that were asked to end have had their time.
	stop, leave, kill          context.Context
	stopNow, leaveNow, killNow context.CancelFunc

	changed bell // the pod's object changed
	content bell // a ConfigMap or Secret of the pod changed
	wake    chan struct{}
	done    chan struct{}

	reporting sync.Mutex // one patch at a time

	mu         sync.Mutex
	pod        *corev1.Pod
	containers map[string]corev1.ContainerStatus
	place      *address.Address
	devices    []device.Device // of all resource claims
	prepared   bool
	ended      bool
	silent     bool // the API must not hear of us
	gone       bool // the API does not know us
	reason     string
	message    string
	killTimer  *time.Timer
	killAt     time.Time
	warned     map[string]bool
}

// New makes the worker of a pod; Run sets it going.
func New(host *Host, pod *corev1.Pod) *Worker {
	dir := Folder(host.Dir, pod)
	w := &Worker{
		host:    host,
		dir:     dir,
		start:   now(),
		volumes: volume.NewSet(host.Cluster, host.Allocatable, filepath.Join(dir, "volumes"), filepath.Join(host.Dir, "volumes")),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		pod:     pod,
		warned:  map[string]bool{},
	}
	if pod.Status.StartTime != nil {
		w.start = *pod.Status.StartTime
	}
	w.containers = restore(pod, now())
	w.leave, w.leaveNow = context.WithCancel(context.Background())
	w.stop, w.stopNow = context.WithCancel(w.leave)
	w.kill, w.killNow = context.WithCancel(context.Background())
	// An address that is already known is taken before any new pod can get it.
	if !status.Finished(pod.Status) {
		if a, ok := host.Addresses.Claim(string(pod.UID), pod.Status.PodIP); ok {
			w.place = &a
		}
	}
	w.Update(pod)
	return w
}

// Folder is where a pod's files lie. The uid alone makes it unique, so a name
// that is too long for a folder may be cut.
func Folder(dir string, pod *corev1.Pod) string {
	const longest = 255
	name := pod.Name[:min(len(pod.Name), longest-len(pod.Namespace)-len(pod.UID)-2)]
	return filepath.Join(dir, "pods", fmt.Sprintf("%s_%s_%s", pod.Namespace, name, pod.UID))
}

// Run lives the pod until it is deleted, vanishes or is silenced. ctx is for
// calls to the API only.
func (w *Worker) Run(ctx context.Context) {
	defer close(w.done)
	reports, cancel := context.WithCancel(ctx)
	defer cancel()
	go w.report(reports)

	if !status.Finished(w.object().Status) {
		w.live(ctx)
	}
	w.end()
	<-w.leave.Done()
	w.finish(ctx)
}

// Done is closed when nothing of the pod runs and the API knows.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Update tells what the API says now.
func (w *Worker) Update(pod *corev1.Pod) {
	w.mu.Lock()
	described := maps.Equal(pod.Labels, w.pod.Labels) && maps.Equal(pod.Annotations, w.pod.Annotations)
	if newer(pod, w.pod) {
		w.pod = pod
	}
	w.mu.Unlock()
	w.changed.ring()
	if !described {
		w.content.ring() // the downward API may have them in a volume
	}
	w.poke()
	if pod.DeletionTimestamp != nil {
		grace := time.Duration(0)
		if s := pod.DeletionGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		w.killWithin(grace)
		w.leaveNow()
	}
}

// Refresh tells that a ConfigMap or Secret of the pod changed.
func (w *Worker) Refresh() { w.content.ring() }

// Vanish tells that the API has no such pod any more.
func (w *Worker) Vanish() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.leaveNow()
	w.killNow()
}

// Silence ends the processes without a word to the API, as a node does that is
// cut off or shut down.
func (w *Worker) Silence(grace time.Duration) {
	w.mu.Lock()
	w.silent = true
	w.mu.Unlock()
	w.killWithin(grace)
	w.leaveNow()
}

// Pod is the newest object that the worker knows.
func (w *Worker) Pod() *corev1.Pod { return w.object() }

// Host is where the pod's processes listen; empty while there are none.
func (w *Worker) Host() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.place == nil || w.ended {
		return ""
	}
	return w.place.Loopback()
}

// killWithin makes the end of patience no later than after grace.
func (w *Worker) killWithin(grace time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := time.Now().Add(grace)
	if w.killTimer == nil {
		w.killTimer, w.killAt = time.AfterFunc(grace, w.killNow), at
	} else if at.Before(w.killAt) {
		w.killAt = at
		w.killTimer.Reset(grace)
	}
}

func (w *Worker) object() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

// end marks that nothing runs any more, and gives the address back. If the API
// has not heard of it, it still shows the address as the pod's, so it is kept.
func (w *Worker) end() {
	w.mu.Lock()
	w.ended = true
	if w.place != nil && !w.silent {
		w.host.Addresses.Release(*w.place)
	}
	w.mu.Unlock()
	w.poke()
}

// warn emits an event once in the worker's life.
func (w *Worker) warn(key string, c *corev1.Container, reason, format string, args ...any) {
	w.mu.Lock()
	known := w.warned[key]
	w.warned[key] = true
	w.mu.Unlock()
	if !known {
		w.event(c, corev1.EventTypeWarning, reason, format, args...)
	}
}

// event speaks of container c, or of the pod if c is nil.
func (w *Worker) event(c *corev1.Container, kind, reason, format string, args ...any) {
	w.mu.Lock()
	pod, quiet := w.pod, w.silent || w.gone
	w.mu.Unlock()
	if quiet {
		return
	}
	ref := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	if c != nil {
		ref.FieldPath = fmt.Sprintf("spec.containers{%s}", c.Name)
		for i := range pod.Spec.InitContainers {
			if pod.Spec.InitContainers[i].Name == c.Name {
				ref.FieldPath = fmt.Sprintf("spec.initContainers{%s}", c.Name)
			}
		}
	}
	w.host.Events.Eventf(ref, kind, reason, format, args...)
}

// newer keeps an object that came late from taking the place of a newer one:
// patches are made against what we hold.
func newer(a, b *corev1.Pod) bool {
	x, errX := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, errY := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return errX != nil || errY != nil || x >= y
}

// now has the precision of the API, so that what is sent equals what is read.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }

// bell wakes everyone who waits for it.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// heard is closed at the next ring.
func (b *bell) heard() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
