//go:build unguarded

package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// Each guard is needed: without it the attack that it stops succeeds.
func TestWithoutTurnsAnEditorKeepsOthersBack(t *testing.T) {
	t.Setenv(guard.Variable, string(RoundRobin))
	q := testLineOf(t, &Queues{}, Fairness{LowerPriorityEvery: 2})
	for i := range 3 {
		q.Add(of("editor", fmt.Sprint(i)))
	}
	q.Add(of("tenant", "new"))
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(PriorityChild)}, of("tenant", "report"))
	if diff := cmp.Diff([]string{"editor/0", "editor/1", "editor/2", "tenant/new", "tenant/report"}, drainAll(q)); diff != "" {
		t.Error("-want +got", diff)
	}
}

func TestWithoutBudgetsFlappingPodsAreAheadOfAll(t *testing.T) {
	t.Setenv(guard.Variable, string(Budgets))
	o := newOrder(Fairness{DegradedBudget: 1, ObjectBudget: 1, Window: time.Hour}, time.Now, func(string) {})
	for range 5 {
		o.request(of("flapper", "x"), PriorityDegraded)
		o.Push(of("flapper", "x"))
		o.done(o.Pop())
		if o.popped != PriorityDegraded {
			t.Errorf("priority %d", o.popped)
		}
	}
}

func TestWithoutSharesANamespaceOccupiesAllWorkers(t *testing.T) {
	t.Setenv(guard.Variable, string(WorkerShares))
	q := testLineOf(t, &Queues{}, Fairness{Workers: 2})
	for i := range 3 {
		q.Add(of("slow", fmt.Sprint(i)))
	}
	for range 3 {
		if item := take(t, q); item.Namespace != "slow" {
			t.Errorf("%s came", item)
		}
	}
}
