package queue

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func failed(namespace string, i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}}
}

func TestRetriesOfANamespaceAreLimitedTogether(t *testing.T) {
	limiter := Backoff(time.Millisecond, time.Minute, 10, 100)
	for i := range 100 {
		if wait := limiter.When(failed("a", i)); wait > 50*time.Millisecond {
			t.Fatalf("retry %d of the burst waits %s", i, wait)
		}
	}
	var last time.Duration
	for i := range 50 {
		last = limiter.When(failed("a", 100+i))
	}
	if last < 4*time.Second || last > 6*time.Second {
		t.Errorf("the 50th retry after the burst waits %s, want about 5s at 10 a second", last)
	}
	if wait := limiter.When(failed("b", 0)); wait > 50*time.Millisecond {
		t.Errorf("a retry of another namespace waits %s", wait)
	}
}

func TestFailuresInARowWaitLongerEachTime(t *testing.T) {
	limiter := Backoff(time.Millisecond, time.Second, 10, 100)
	item := failed("a", 0)
	var got []time.Duration
	for range 4 {
		got = append(got, limiter.When(item))
	}
	want := []time.Duration{time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("waits %v, want %v", got, want)
			break
		}
	}
	if n := limiter.NumRequeues(item); n != 4 {
		t.Errorf("counted %d failures, want 4", n)
	}
	limiter.Forget(item)
	if wait := limiter.When(item); wait != time.Millisecond {
		t.Errorf("waits %s after a success, want 1ms", wait)
	}
}
