package queue

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: name}}
}

func testLine(t *testing.T, lines *Queues) *queue {
	t.Helper()
	return testLineOf(t, lines, Fairness{})
}

func testLineOf(t *testing.T, lines *Queues, f Fairness) *queue {
	t.Helper()
	o := Options{Depth: len(lines.all), Fairness: f}
	q := lines.New(o)(t.Name(), Backoff(time.Millisecond, time.Second, 0, 0)).(*queue)
	t.Cleanup(q.ShutDown)
	return q
}

// take is the next in line; it fails the test when nobody comes.
func take(t *testing.T, q *queue) reconcile.Request {
	t.Helper()
	got := make(chan reconcile.Request, 1)
	go func() {
		item, _ := q.Get()
		got <- item
	}()
	select {
	case item := <-got:
		return item
	case <-time.After(2 * time.Minute):
		t.Fatal("nobody stands in line")
		return reconcile.Request{}
	}
}

func TestWhatStandsInLineIsWorkedOffBeforeTheEnd(t *testing.T) {
	lines := &Queues{}
	q := testLine(t, lines)
	q.Add(request("in hand"))
	inHand := take(t, q)
	q.Add(request("queued"))

	drained := make(chan int)
	go func() { drained <- lines.Drain(context.Background()) }()
	for !lines.closed.Load() {
		time.Sleep(time.Millisecond)
	}
	q.Add(request("too late"))
	select {
	case <-drained:
		t.Fatal("drained although objects are in hand and in line")
	case <-time.After(100 * time.Millisecond):
	}
	q.Done(inHand)
	queued := take(t, q)
	if queued != request("queued") {
		t.Errorf("next is %v", queued)
	}
	q.Done(queued)
	if left := <-drained; left != 0 {
		t.Errorf("%d left", left)
	}
	if q.Len() != 0 {
		t.Error("somebody joined a closed line")
	}
}

func TestDrainingEndsWithItsLimit(t *testing.T) {
	lines := &Queues{}
	testLine(t, lines).Add(request("nobody works on it"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if left := lines.Drain(ctx); left != 1 {
		t.Errorf("%d left, want 1", left)
	}
}

func TestWhatAUserDidComesBeforeWhatIsOnlyLookedAtAgain(t *testing.T) {
	q := testLine(t, &Queues{})
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: "1"}}
	}
	h := &handler.EnqueueRequestForObject{}
	h.Create(t.Context(), event.CreateEvent{Object: pod("first list"), IsInInitialList: true}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("resync"), ObjectNew: pod("resync")}, q)
	h.Create(t.Context(), event.CreateEvent{Object: pod("new")}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: pod("deleted")}, q)
	var got []string
	for range 4 {
		got = append(got, take(t, q).Name)
	}
	if got[0] != "new" || got[1] != "deleted" {
		t.Errorf("order %v", got)
	}
}

func TestWhatUsersAskedForIsPressingWhileItStandsInLine(t *testing.T) {
	lines := &Queues{}
	asked, told := testLine(t, lines), testLine(t, lines)
	look := func(rule string, want bool) {
		t.Helper()
		if got := lines.UserWorkPending("n"); got != want {
			t.Errorf("%s: pressing %v, want %v", rule, got, want)
		}
	}
	look("nobody stands in line", false)
	told.AddWithOpts(priorityqueue.AddOpts{Priority: new(PriorityChild)}, request("a"))
	look("only reports stand in line", false)
	asked.Add(request("a"))
	asked.Add(request("b"))
	look("what a user did stands in line", true)
	if lines.UserWorkPending("another") {
		t.Error("what a user of another namespace did holds reports back")
	}
	take(t, asked)
	look("what a user did is under way, and more stands behind it", true)
	take(t, asked)
	look("the last of them is in hand", false)
}

func TestThoseWhoWaitForALullComeOnceNothingThatUsersAskedForStandsInLine(t *testing.T) {
	lines := &Queues{}
	asked, told := testLine(t, lines), testLine(t, lines)
	look := func(rule string, want int) {
		t.Helper()
		if got := told.Len(); got != want {
			t.Errorf("%s: %d stand in line, want %d", rule, got, want)
		}
	}
	for _, name := range []string{"a", "b"} {
		asked.Add(request(name))
	}
	first := take(t, asked)
	for _, name := range []string{"1", "2", "3", "4", "5"} {
		told.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(PriorityIdle)}, request(name))
	}
	told.Add(request("5"))
	told.Done(take(t, told))
	asked.Done(first)
	look("more stands behind what a user did", 0)
	asked.Done(take(t, asked))
	look("the last of it is done, so the first come", deferredBatch)
	for _, want := range []string{"1", "2"} {
		if got := take(t, told).Name; got != want {
			t.Errorf("%s came, want %s", got, want)
		}
	}
	told.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(PriorityIdle)}, request("1"))
	told.Done(request("1"))
	look("each calls others", deferredBatch)
	told.Done(request("2"))
	look("one that waited longer comes first, one that was there for another reason does not", 3)
	var last string
	for range 3 {
		last = take(t, told).Name
	}
	if last != "1" || !told.deferred.empty("n") {
		t.Errorf("%s came last; %v are left", last, told.deferred.items)
	}
}

func TestOwnersWaitUntilWhatTheyOwnHasBeenCalled(t *testing.T) {
	lines := &Queues{}
	owners, owned := testLine(t, lines), testLine(t, lines)
	for _, q := range []*queue{owners, owned} {
		q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(PriorityIdle)}, request("a"))
	}
	owners.Done(request("something"))
	if owners.Len() != 0 || owned.Len() != 1 {
		t.Errorf("%d owners and %d owned stand in line, want 0 and 1", owners.Len(), owned.Len())
	}
	owned.Done(take(t, owned))
	if owners.Len() != 1 {
		t.Error("the owner was not called")
	}
}

// recorded is a queue that remembers how somebody joined it.
type recorded struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	joined []priorityqueue.AddOpts
}

func (r *recorded) AddWithOpts(o priorityqueue.AddOpts, _ ...reconcile.Request) {
	r.joined = append(r.joined, o)
}

func TestChangesOfChildrenAreGathered(t *testing.T) {
	q := &recorded{}
	causes := &Causes{}
	h := Batch(&handler.EnqueueRequestForObject{}, time.Minute, PriorityDegraded, causes)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", ResourceVersion: "1"}}
	h.Create(t.Context(), event.CreateEvent{Object: pod}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: pod}, q)
	h.Generic(t.Context(), event.GenericEvent{Object: pod}, q)
	if len(q.joined) != 4 {
		t.Fatalf("%d of 4 changes woke somebody", len(q.joined))
	}
	for _, o := range q.joined {
		if o.After != time.Minute {
			t.Errorf("joined after %s", o.After)
		}
		if o.Priority == nil || *o.Priority != PriorityDegraded && *o.Priority != handler.LowPriority {
			t.Errorf("joined at %v", o.Priority)
		}
	}
	want := []string{"Pod a created", "Pod a updated", "Pod a deleted", "Pod a noticed"}
	if diff := cmp.Diff(want, causes.Take(request("a"))); diff != "" {
		t.Error("causes: -want +got", diff)
	}
	if again := causes.Take(request("a")); again != nil {
		t.Errorf("causes are told twice: %v", again)
	}
}

func TestUpdatesThatOnlyAddColourWaitLonger(t *testing.T) {
	q := &recorded{}
	object := &handler.EnqueueRequestForObject{}
	soon, late := Batch(object, time.Second, PriorityChild, nil), Batch(object, time.Minute, PriorityChild, nil)
	h := ByUpdate(soon, func(e event.UpdateEvent) handler.EventHandler {
		if e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() {
			return soon
		}
		return late
	})
	was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", Generation: 1}}
	is := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "2", Generation: 2}}
	h.Create(t.Context(), event.CreateEvent{Object: was}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: is, ObjectNew: is}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: is}, q)
	var got []time.Duration
	for _, o := range q.joined {
		got = append(got, o.After)
	}
	if diff := cmp.Diff([]time.Duration{time.Second, time.Second, time.Minute, time.Second}, got); diff != "" {
		t.Error("-want +got", diff)
	}
}
