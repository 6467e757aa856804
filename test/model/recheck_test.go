package model

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// TestEnginesAreAskedAgainAndNothingIsWritten: a check that finds everything as it
// should be is a question to each engine and nothing else; one that does not has
// the engine load again, and the model says why meanwhile.
func TestEnginesAreAskedAgainAndNothingIsWritten(t *testing.T) {
	w := newWorld(t, 3)
	w.restart(patiently, often)
	defer w.restart(patiently, seldom)
	dm := w.lora("lora", "one", "s3://b/one")
	w.reported(dm, 3, 3)
	w.asked(1) // what the first status said is written by now
	mark := w.mark()
	w.asked(3)
	if writes := w.writes(mark); len(writes) > 0 {
		t.Errorf("checks that found nothing wrote %v", writes)
	}
	for _, e := range w.engines {
		if loads := e.answered(http.MethodPost); len(loads) != 1 {
			t.Errorf("loaded %d times", len(loads))
		}
	}

	gate := make(chan struct{}) // so that loading again takes until the status was seen
	w.engines[1].set(func(e *engine) {
		clear(e.loaded)
		e.gate, e.gated = gate, http.MethodPost
	})
	w.reported(dm, 2, 3)
	if said := dm.Status.Endpoints[1].Error; !strings.Contains(said, "unloaded by somebody else") {
		t.Errorf("the endpoint says %q", said)
	}
	w.engines[1].set(func(e *engine) { e.gate = nil })
	close(gate)
	w.reported(dm, 3, 3)
	w.holding(w.engines, "one=s3://b/one")
	w.eventually("an event", func() error {
		var list eventsv1.EventList
		if err := cluster.Client.List(w.ctx, &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Name == dm.Name && strings.Contains(e.Note, "unloaded by somebody else") {
				return nil
			}
		}
		return fmt.Errorf("none of %d tells", len(list.Items))
	})
	w.remove(dm)
	w.holding(w.engines)
}

// asked waits until every engine was asked so many times from now on.
func (w *world) asked(times int) {
	w.Helper()
	var before []int
	for _, e := range w.engines {
		before = append(before, len(e.answered(http.MethodGet)))
	}
	w.eventually(fmt.Sprintf("%d checks", times), func() error {
		for i, e := range w.engines {
			if now := len(e.answered(http.MethodGet)) - before[i]; now < times {
				return fmt.Errorf("engine %d was asked %d times", i, now)
			}
		}
		return nil
	})
}

func (w *world) mark() int64 {
	w.Helper()
	end, err := auditlog.Of(cluster.Kubeconfig).End()
	if err != nil {
		w.Fatal(err)
	}
	return end
}

// writes are those of this world after a mark that concern models or tell of them.
func (w *world) writes(mark int64) []string {
	w.Helper()
	var all []string
	err := auditlog.Of(cluster.Kubeconfig).Since(mark, func(e auditlog.Entry) {
		about := e.Ref.Resource == "dynamomodels" || e.Ref.Resource == "events"
		if e.Ref.Namespace == w.namespace && e.Writes() && about {
			all = append(all, e.String())
		}
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}
