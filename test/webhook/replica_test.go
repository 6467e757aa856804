package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// traffic admits objects, of both versions, until it is told to stop.
type traffic struct {
	admitted, failed atomic.Int64
	converted        atomic.Int64 // of those that failed, written in a version that is not stored
	last             atomic.Pointer[error]
	reasons          map[string]int // of failures; read it when all is done
	mu               sync.Mutex
	stop             context.CancelFunc
	done             sync.WaitGroup
}

func newTraffic(t *testing.T, ns string, every time.Duration) *traffic {
	ctx, stop := context.WithCancel(t.Context())
	f := &traffic{stop: stop, reasons: map[string]int{}}
	for worker := range 4 {
		f.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				object := graphOf(ns, fmt.Sprintf("w%d-%d", worker, n), `{services: {a: {}}}`)
				if worker%2 == 1 {
					object = graphOf(ns, object.GetName(), `{components: [{name: a}]}`)
					object.SetAPIVersion("nvidia.com/v1beta1")
				}
				err := impatient.Create(ctx, object, client.DryRunAll)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					f.failed.Add(1)
					f.last.Store(&err)
					if object.GetAPIVersion() == "nvidia.com/v1beta1" {
						f.converted.Add(1)
					}
					f.mu.Lock()
					f.reasons[object.GroupVersionKind().Version+err.Error()[max(0, strings.LastIndex(err.Error(), ": ")):]]++
					f.mu.Unlock()
				default:
					f.admitted.Add(1)
				}
				select {
				case <-time.After(every):
				case <-ctx.Done():
				}
			}
		})
	}
	return f
}

// reached waits for a number of admissions.
func (f *traffic) reached(t *testing.T, n int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d admissions", n), func(context.Context) error {
		if got := f.admitted.Load() + f.failed.Load(); got < n {
			return fmt.Errorf("%d so far", got)
		}
		return nil
	})
}

// more waits for further admissions.
func (f *traffic) more(t *testing.T, n int64) {
	t.Helper()
	f.reached(t, f.admitted.Load()+f.failed.Load()+n)
}

// end stops the traffic; none of it may have failed.
func (f *traffic) end(t *testing.T) {
	t.Helper()
	f.stop()
	f.done.Wait()
	if n := f.failed.Load(); n > 0 {
		t.Errorf("%d of %d admissions failed, at last: %v", n, n+f.admitted.Load(), *f.last.Load())
	}
}

func pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := cluster.Client.List(ctx, &list, client.InNamespace(localenv.OperatorKey.Namespace), client.MatchingLabels{"control-plane": "controller-manager"})
	return list.Items, err
}

// TestReplicasComeAndGo ends each replica, the leader and the other, while
// objects are admitted, and every failure of every attempt counts. Not parallel: it is
// about who serves.
func TestReplicasComeAndGo(t *testing.T) {
	ns := namespace(t, nil)
	attempts := 1
	if *measure {
		attempts = 3
	}
	for attempt := range attempts {
		f := replaced(t, ns)
		summary.Line(t, "replicas: attempt %d, %d admissions while each of two replicas was replaced, as shipped, %d failures %v",
			attempt+1, f.admitted.Load(), f.failed.Load(), f.reasons)
		if n := f.failed.Load(); n > 0 {
			t.Errorf("attempt %d: %d of %d admissions failed, at last: %v", attempt+1, n, n+f.admitted.Load(), *f.last.Load())
		}
	}
}

// replaced replaces each replica under traffic.
func replaced(t *testing.T, ns string) *traffic {
	t.Helper()
	before, err := pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(before) != replicas {
		t.Fatalf("%d replicas", len(before))
	}
	f := newTraffic(t, ns, 20*time.Millisecond)
	for i, pod := range before {
		f.reached(t, int64(100*(i+1)))
		if err := cluster.Client.Delete(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another replica in place of "+pod.Name, func(ctx context.Context) error {
			now, err := pods(ctx)
			if err != nil {
				return err
			}
			for _, p := range now {
				if p.Name == pod.Name {
					return errors.New("it is still there")
				}
			}
			return allReady(ctx)
		})
	}
	f.reached(t, f.admitted.Load()+f.failed.Load()+100)
	f.stop()
	f.done.Wait()
	return f
}

// TestReplicasAreKilled is measured: what a replica that is gone without a word
// costs those who are asking just then. Nobody can promise them an answer: API
// servers do not ask again. With failurePolicy Ignore those who write the version
// that is stored need none; what has to be converted has no such policy.
func TestReplicasAreKilled(t *testing.T) {
	if !*measure {
		t.Skip("what is lost depends on the moment: run make rotation")
	}
	ns := namespace(t, nil)
	const rounds = 10
	f := newTraffic(t, ns, 20*time.Millisecond)
	for round := range rounds {
		f.more(t, 500/rounds)
		before, err := pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		killed(t, before[round%len(before)])
	}
	f.more(t, 100)
	f.stop()
	f.done.Wait()
	stored := f.failed.Load() - f.converted.Load()
	summary.Line(t, "replicas: %d admissions while a replica was killed %d times, failurePolicy %s: %d of v1alpha1 failed and %d of v1beta1, %v",
		f.admitted.Load(), rounds, *failurePolicy, stored, f.converted.Load(), f.reasons)
	if stored > 0 && *failurePolicy == "Ignore" {
		t.Errorf("%d admissions of the stored version failed: %v", stored, f.reasons)
	}
}

// killed ends a replica's process and waits until it serves again.
func killed(t *testing.T, pod corev1.Pod) {
	t.Helper()
	restarts := pod.Status.ContainerStatuses[0].RestartCount
	pid, err := process.InPod(pod.UID)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, pod.Name+" to be started again", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(&pod), &pod); err != nil {
			return err
		}
		if pod.Status.ContainerStatuses[0].RestartCount == restarts {
			return errors.New("it was not yet")
		}
		return allReady(ctx)
	})
}

// TestRotation is measured: certificates of a minute, five minutes.
func TestRotation(t *testing.T) {
	if !*measure {
		t.Skip("takes five minutes: run make rotation; package admission turns certificates on a clock of its own")
	}
	ns := namespace(t, nil)
	before := certificates(t)
	f := newTraffic(t, ns, time.Second)
	seen := map[string]bool{}
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Second) {
		seen[certificates(t)] = true
	}
	f.end(t)
	delete(seen, before)
	summary.Line(t, "rotation: %d admissions in 5 min with certificates of 60 s, %d new certificates, %d failures", f.admitted.Load(), len(seen), f.failed.Load())
	if f.admitted.Load() < 1000 || len(seen) < 5 {
		t.Errorf("%d admissions, %d new certificates", f.admitted.Load(), len(seen))
	}
}

func certificates(t *testing.T) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: localenv.OperatorKey.Namespace, Name: "webhook-server-cert"}, secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[corev1.TLSCertKey])
}
