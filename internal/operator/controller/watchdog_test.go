package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
)

// TestWatchdog walks through a time in which workers hang, and looks at each of
// its ends.
func TestWatchdog(t *testing.T) {
	const deadline, stuck, idle = time.Minute, 2 * time.Minute, 10 * time.Minute
	for rule, c := range map[string]struct {
		hanging, waiting int           // at the beginning
		fails            time.Duration // how often a reconcile begins and ends with an error
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

// TestAControllerThatHangsIsNoticed runs a real controller whose reconciles ignore
// their deadline: first with a worker left, then with none.
func TestAControllerThatHangsIsNoticed(t *testing.T) {
	w := &Watchdog{Clock: clock.RealClock{}, Deadline: 10 * time.Millisecond, Stuck: 10 * time.Millisecond, Idle: 50 * time.Millisecond}
	hanging, release := make(chan string, 2), make(chan struct{})
	requests := make(chan event.TypedGenericEvent[reconcile.Request])
	c, err := ctrlcontroller.NewTypedUnmanaged("hangs", ctrlcontroller.TypedOptions[reconcile.Request]{
		SkipNameValidation: new(true), MaxConcurrentReconciles: 2, ReconciliationTimeout: w.Deadline,
		NewQueue: w.Queue("Graph", new(queue.Queues).New(queue.Options{Fairness: queue.Fairness{Workers: 2}})),
		Reconciler: w.Watch("Graph", 2, reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			hanging <- request.Name
			<-release
			return reconcile.Result{}, nil
		})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.TypedChannel(requests, handler.TypedFuncs[reconcile.Request, reconcile.Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[reconcile.Request], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(e.Object)
		},
	})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	hang := func(name string) {
		requests <- event.TypedGenericEvent[reconcile.Request]{Object: reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}}
		<-hanging
	}
	hang("one")
	time.Sleep(w.Deadline + 2*w.Stuck) // it is stuck by then, whatever the machine does
	if err := w.Check(true); err != nil {
		t.Errorf("with a worker left: %v", err)
	}
	hang("two")
	for err = w.Check(true); err == nil && t.Context().Err() == nil; err = w.Check(true) {
		time.Sleep(time.Millisecond)
	}
	if err == nil || !strings.Contains(err.Error(), "all 2 workers of Graph are stuck") {
		t.Errorf("got %v", err)
	}
	close(release)
	for err = w.Check(true); err != nil && t.Context().Err() == nil; err = w.Check(true) {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
