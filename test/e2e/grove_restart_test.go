package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/openloop"
)

// TestASequentialRestartOnGroveTakesDownOneServiceAtATime: Grove updates cliques
// some time after they were told, and says so late; whoever believes what a clique
// shows until then restarts all services at once. Users come all the while, and
// each of them is answered.
func TestASequentialRestartOnGroveTakesDownOneServiceAtATime(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, need(t, grove))
	w.apply(quickstart)
	w.patchGraph("quickstart", `{"spec":{"services":{"Frontend":{"replicas":2},"prefill":{"replicas":2},"decode":{"replicas":2}}}}`)
	url := w.frontendURL(w.ready("quickstart"))
	w.answers(url)

	stop, users := w.users(url, 4)
	seen, watched := w.followRestart("quickstart")
	order := []string{"prefill", "decode", "Frontend"}
	w.patchGraph("quickstart", `{"spec":{"restart":{"id":"1","strategy":{"order":["prefill","decode","Frontend"]}}}}`)
	w.eventually("the restart to be completed", func(context.Context) error {
		if r := w.graph("quickstart").Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseCompleted || r.ObservedID != "1" {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
	for _, pod := range w.pods(w.ctx) {
		if pod.DeletionTimestamp == nil && (pod.Annotations[v1alpha1.AnnotationRestartAt] != "1" || !podReady(pod)) {
			t.Errorf("the restart is completed, and %s has restart %q, ready %v", pod.Name, pod.Annotations[v1alpha1.AnnotationRestartAt], podReady(pod))
		}
	}
	watched()
	if diff := cmp.Diff(order, seen.order); diff != "" {
		t.Errorf("services were restarted in another order (-want +got):\n%s", diff)
	}
	if len(seen.together) > 0 {
		t.Errorf("not all pods of these were ready at one time: %v", seen.together)
	}
	stop()
	outcomes := <-users
	for _, o := range openloop.Failed(outcomes) {
		t.Errorf("planned at %v, failed at %v: %v", o.Planned, o.Ended, o.Err)
	}
	t.Logf("%d requests, none failed", len(outcomes))
}

// users ask a frontend in an open loop until they are stopped.
func (w world) users(url string, rate float64) (stop context.CancelFunc, outcomes <-chan []openloop.Outcome) {
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan []openloop.Outcome, 1)
	models, err := w.cluster.Models(w.ctx, url)
	if err != nil || len(models) == 0 {
		w.Fatalf("models %v: %v", models, err)
	}
	go func() {
		done <- openloop.Run(ctx, openloop.Poisson(rate, 10*time.Minute, 1), func(n int) error {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			return w.cluster.Chat(limited, url, models[0], fmt.Sprintf("question %d", n), 20, func(string) {})
		})
	}()
	return stop, done
}

// restartSeen is what was seen of a restart from outside.
type restartSeen struct {
	// order is that in which services first lacked a ready pod of the two they have.
	order []string
	// together are services that lacked one at the same time.
	together []string
}

// followRestart looks at the pods of a graph until the returned function is called.
func (w world) followRestart(name string) (*restartSeen, func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	var all sync.WaitGroup
	seen := &restartSeen{}
	services := w.graph(name).Spec.Services
	all.Go(func() {
		for ctx.Err() == nil {
			ready := map[string]int{}
			for _, pod := range w.pods(w.ctx) {
				if podReady(pod) && pod.DeletionTimestamp == nil {
					ready[pod.Labels[v1alpha1.LabelComponent]]++
				}
			}
			var short []string
			for service := range services {
				if ready[service] < 2 {
					short = append(short, service)
				}
			}
			slices.Sort(short)
			if text := strings.Join(short, "+"); len(short) > 1 && !slices.Contains(seen.together, text) {
				seen.together = append(seen.together, text)
			}
			for _, service := range short {
				if !slices.Contains(seen.order, service) {
					seen.order = append(seen.order, service)
				}
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return seen, func() { cancel(); all.Wait() }
}

func podReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// TestARestartThatIsThereAtCreationIsNotCarriedOut: its pods start once, on each
// path.
func TestARestartThatIsThereAtCreationIsNotCarriedOut(t *testing.T) {
	t.Run("on Deployments", func(t *testing.T) {
		t.Parallel()
		newWorld(t).startsOnce()
	})
	t.Run("on Grove", func(t *testing.T) {
		t.Parallel()
		newWorldOn(t, need(t, grove)).startsOnce()
	})
}

func (w world) startsOnce() {
	w.Helper()
	dgd := w.restful("g")
	dgd.Spec.Restart = &v1alpha1.Restart{ID: "1"}
	w.create(dgd)
	dgd = w.ready("g")
	if r := dgd.Status.Restart; r == nil || r.ObservedID != "1" || r.Phase != v1alpha1.RestartPhaseCompleted {
		w.Errorf("restart %+v", r)
	}
	first := w.pods(w.ctx)
	if len(first) != len(dgd.Spec.Services) {
		w.Errorf("%d pods", len(first))
	}
	// A graph that is made later has gone through all that this one may go through.
	later := w.restful("later")
	w.create(later)
	w.ready("later")
	for _, pod := range w.pods(w.ctx) {
		if pod.Labels[v1alpha1.LabelGraphName] == "g" && !slices.ContainsFunc(first, func(p corev1.Pod) bool { return p.UID == pod.UID }) {
			w.Errorf("%s was started again", pod.Name)
		}
	}
}
