package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWatchdog walks through a time in which workers hang, and looks at each of
// its ends.
func TestWatchdog(t *testing.T) {
	const deadline, stuck, idle = time.Minute, 2 * time.Minute, 10 * time.Minute
	for rule, c := range map[string]struct {
		hanging, waiting int           // at the beginning
		fails            time.Duration // how often a pass begins and ends with an error
		after            time.Duration
		standby          bool
		stuck, idle      time.Duration
		want             string
	}{
		"nothing to do": {after: time.Hour, stuck: stuck, idle: idle},
		"a pass within its deadline and the margin":          {hanging: 2, after: 3 * time.Minute, stuck: stuck, idle: idle},
		"one of two workers is stuck":                        {hanging: 1, after: time.Hour, stuck: stuck, idle: idle},
		"all workers are stuck":                              {hanging: 2, after: 3*time.Minute + time.Second, stuck: stuck, idle: idle, want: "all 2 workers of Graph are stuck"},
		"all workers are stuck, and nobody is to notice":     {hanging: 2, after: time.Hour},
		"objects wait and nobody takes them":                 {waiting: 3, after: idle + time.Second, stuck: stuck, idle: idle, want: "3 objects wait in the queue of Graph"},
		"not for long":                                       {waiting: 3, after: idle, stuck: stuck, idle: idle},
		"in a replica that stands by":                        {waiting: 3, after: time.Hour, standby: true, stuck: stuck, idle: idle},
		"the API server is away, so that every pass fails":   {waiting: 3, fails: 5 * time.Minute, after: time.Hour, stuck: stuck, idle: idle},
		"a deadline that is longer than what counts as idle": {waiting: 3, after: 2*time.Minute + 59*time.Second, stuck: stuck, idle: time.Second},
	} {
		t.Run(rule, func(t *testing.T) {
			clock := testingclock.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
			w := &Watchdog{Clock: clock, Deadline: deadline, Stuck: c.stuck, Idle: c.idle}
			queue := w.Queue("Graph", func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
				return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			})("graphs", nil)
			defer queue.ShutDown()
			began, release := make(chan struct{}), make(chan struct{})
			r := w.Watch("Graph", 2, reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
				if request.Name == "hangs" {
					began <- struct{}{}
					<-release
				}
				return reconcile.Result{}, errors.New("connection refused")
			}))
			request := reconcile.Request{}
			for i := range c.waiting {
				request.Name = strings.Repeat("a", i+1)
				queue.Add(request)
			}
			done := make(chan struct{})
			for range c.hanging {
				go func() {
					defer func() { done <- struct{}{} }()
					_, _ = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "hangs"}})
				}()
				<-began
			}
			if err := w.Check(!c.standby); err != nil {
				t.Errorf("at the beginning: %v", err)
			}
			if c.fails == 0 {
				clock.Step(c.after)
			}
			for passed := time.Duration(0); c.fails > 0 && passed < c.after; passed += c.fails {
				clock.Step(c.fails)
				if _, err := r.Reconcile(t.Context(), request); err == nil {
					t.Error("the pass is to fail")
				}
				if err := w.Check(!c.standby); err != nil {
					t.Error(err)
				}
			}
			err := w.Check(!c.standby)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			close(release)
			for range c.hanging {
				<-done
			}
			for queue.Len() > 0 {
				item, _ := queue.Get()
				queue.Done(item)
			}
			if err := w.Check(!c.standby); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}
