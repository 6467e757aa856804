package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/address"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/process"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/volume"
)

// stage is a node with one pod on it: an API that keeps the pod, programs that
// follow a script, and a clock that runs as fast as nothing happens.
type stage struct {
	t    *testing.T
	host *Host
	w    *Worker

	mu        sync.Mutex
	pod       *corev1.Pod
	removed   bool
	patches   int
	secrets   map[string]map[string][]byte
	claims    map[string]*resourcev1.ResourceClaim
	prepared  []string // claims whose devices are ready
	events    []string
	launched  []process.Spec
	signals   []string
	script    func(args []string) *actor
	unhealthy map[string]error // by probe path
}

// actor is a scripted process: it ends after lasting with code, or when asked.
type actor struct {
	lasting  time.Duration // zero is for ever
	code     int
	stubborn bool // does not listen to SIGTERM
	says     string

	once sync.Once
	done chan struct{}
	exit int
	st   *stage
	name string
}

func (a *actor) end(code int) {
	a.once.Do(func() { a.exit = code; close(a.done) })
}

func (a *actor) Signal(s syscall.Signal) {
	a.st.mu.Lock()
	a.st.signals = append(a.st.signals, fmt.Sprintf("%s %s", a.name, s))
	a.st.mu.Unlock()
	if s == syscall.SIGTERM && a.stubborn {
		return
	}
	a.end(128 + int(s))
}

func (a *actor) Done() <-chan struct{} { return a.done }
func (a *actor) ExitCode() int         { return a.exit }

// perform runs the play in a bubble of time: act is called once the worker runs.
func perform(t *testing.T, pod *corev1.Pod, act func(*stage)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		st := &stage{t: t, pod: pod, secrets: map[string]map[string][]byte{}, unhealthy: map[string]error{}}
		st.script = func([]string) *actor { return &actor{} }
		st.host = &Host{
			API: st, Cluster: st, Claims: st, Launcher: st, Prober: st, Events: st,
			Addresses: address.NewPool(17), Dir: dir, BinDir: "/bin-dir", HostIP: "127.0.0.1",
			ProxyURL: "http://127.0.0.1:1", APIServerURL: "https://127.0.0.1:6443", CAFile: "/ca", Backoff: DefaultBackoff,
		}
		act(st)
		if st.w != nil {
			st.w.Vanish()
			<-st.w.Done()
		}
	})
}

func (st *stage) start() {
	st.w = New(st.host, st.pod.DeepCopy())
	go st.w.Run(context.Background())
	synctest.Wait()
}

// after lets time pass.
func (st *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// edit changes the pod as a user would.
func (st *stage) edit(change func(*corev1.Pod)) {
	st.mu.Lock()
	pod := st.pod.DeepCopy()
	change(pod)
	st.bump(pod)
	st.mu.Unlock()
	st.w.Update(pod.DeepCopy())
	synctest.Wait()
}

func (st *stage) delete(grace int64) {
	st.edit(func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), &grace })
}

func (st *stage) bump(pod *corev1.Pod) {
	n, _ := strconv.Atoi(st.pod.ResourceVersion)
	pod.ResourceVersion = strconv.Itoa(n + 1)
	st.pod = pod
}

// What the stage has seen so far.

func (st *stage) status() corev1.PodStatus {
	st.mu.Lock()
	defer st.mu.Unlock()
	return *st.pod.Status.DeepCopy()
}

func (st *stage) sent() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.patches
}

func (st *stage) launches() []process.Spec {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.launched)
}

func (st *stage) setSecret(name string, data map[string][]byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.secrets[name] = data
}

// line sums up the pod: phase, readiness, then each container.
func (st *stage) line() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.pod.Status
	out := []string{string(s.Phase)}
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReady {
			out = append(out, "ready="+string(c.Status))
		}
	}
	if s.Reason != "" {
		out = append(out, s.Reason)
	}
	for _, cs := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		text := cs.Name + ":"
		switch {
		case cs.State.Running != nil:
			text += "running"
		case cs.State.Terminated != nil:
			text += fmt.Sprintf("%s(%d)", cs.State.Terminated.Reason, cs.State.Terminated.ExitCode)
		case cs.State.Waiting != nil:
			text += cs.State.Waiting.Reason
		}
		if cs.RestartCount > 0 {
			text += fmt.Sprintf("x%d", cs.RestartCount)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (st *stage) expect(want string) {
	st.t.Helper()
	if got := st.line(); got != want {
		st.t.Errorf("after %v\n got %s\nwant %s", time.Since(bubbleBegin), got, want)
	}
}

// bubbleBegin is when time begins in a bubble.
var bubbleBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (st *stage) heard(event string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.ContainsFunc(st.events, func(e string) bool { return strings.Contains(e, event) })
}

func (st *stage) countEvents(event string) (n int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, e := range st.events {
		if strings.Contains(e, event) {
			n++
		}
	}
	return n
}

// API

func (st *stage) PatchStatus(_ context.Context, pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.removed {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod.Name)
	}
	before, err := json.Marshal(st.pod)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	after := &corev1.Pod{}
	if err := json.Unmarshal(merged, after); err != nil {
		return nil, err
	}
	st.patches++
	st.bump(after)
	return after.DeepCopy(), nil
}

func (st *stage) Remove(context.Context, *corev1.Pod) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.removed = true
	return nil
}

// Cluster

func (st *stage) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmap"}, name)
}

func (st *stage) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if data, ok := st.secrets[name]; ok {
		return &corev1.Secret{Data: data}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secret"}, name)
}

func (st *stage) Bound(context.Context, string, string) (*corev1.PersistentVolume, error) {
	return nil, errors.New("no volume here")
}

func (st *stage) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (volume.Token, error) {
	return volume.Token{Text: "token", Issued: time.Now(), Expires: time.Now().Add(time.Hour)}, nil
}

// Claims

func (st *stage) Claim(_ context.Context, _, name string) (*resourcev1.ResourceClaim, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if claim, ok := st.claims[name]; ok {
		return claim, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "resourceclaim"}, name)
}

func (st *stage) Prepared(_ context.Context, claim *resourcev1.ResourceClaim, _ []device.Device) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.prepared = append(st.prepared, claim.Name)
	return nil
}

// Launcher

func (st *stage) Launch(spec process.Spec) (process.Process, error) {
	a := st.script(spec.Args)
	if a == nil {
		return nil, errors.New("no such program")
	}
	a.st, a.name, a.done = st, strings.Join(spec.Args, " "), make(chan struct{})
	if a.says != "" {
		fmt.Fprintln(spec.Stdout, a.says)
	}
	st.mu.Lock()
	st.launched = append(st.launched, spec)
	st.mu.Unlock()
	if a.lasting > 0 {
		time.AfterFunc(a.lasting, func() { a.end(a.code) })
	}
	return a, nil
}

// Prober

func (st *stage) Check(p *corev1.Probe, _ *corev1.Container, _ string) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if p.HTTPGet == nil {
		return nil
	}
	return st.unhealthy[p.HTTPGet.Path]
}

func (st *stage) Get(get *corev1.HTTPGetAction, _ *corev1.Container, _ string, _ time.Duration) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.signals = append(st.signals, "GET "+get.Path)
	return nil
}

func (st *stage) health(path string, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.unhealthy[path] = err
}

// Events

func (st *stage) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.events = append(st.events, reason+" "+fmt.Sprintf(format, args...))
}

func (st *stage) Event(o runtime.Object, kind, reason, message string) {
	st.Eventf(o, kind, reason, "%s", message)
}

func (st *stage) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	st.Eventf(o, kind, reason, format, args...)
}
