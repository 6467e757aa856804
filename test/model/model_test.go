package model

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

const adapter, place = "org/adapter", "s3://bucket/adapter"

// Ten percent of the engines are slow and ten percent fail.
func TestManyEnginesOfWhichSomeAreSlowAndSomeFail(t *testing.T) {
	const all, each = 200, 20
	w := newWorld(t, all)
	slowOnes, failing, healthy := w.engines[:each], w.engines[each:2*each], w.engines[2*each:]
	gate := make(chan struct{})
	for _, e := range slowOnes {
		e.set(func(e *engine) {
			if e.delay = *slow; *slow == 0 {
				e.gate = gate
			}
		})
	}
	for _, e := range failing {
		e.set(func(e *engine) { e.failing = true })
	}
	begun := time.Now()
	dm := w.lora("lora", adapter, place)
	w.holding(healthy, adapter+"="+place)
	took := time.Since(begun)
	for _, e := range slowOnes {
		if len(e.answered("")) > 0 {
			t.Error("a slow engine answered before the healthy ones were loaded")
		}
	}
	close(gate)
	w.holding(slowOnes, adapter+"="+place)
	w.reported(dm, all-each, all)
	w.eventually("the failures to be told", func() error {
		if err := cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(dm), dm); err != nil {
			return err
		}
		if told := slices.DeleteFunc(slices.Clone(dm.Status.Endpoints), func(e v1alpha1.ModelEndpoint) bool { return e.Error == "" }); len(told) != each {
			return fmt.Errorf("%d of them are", len(told))
		}
		return nil
	})
	summary.Line(t, "%d engines, %d slow and %d failing: the %d healthy ones loaded after %s", all, each, each, len(healthy), took.Round(10*time.Millisecond))

	// From here on nobody who has it is asked anything. Nor is anything written, once
	// all is told.
	before := total(slices.Concat(slowOnes, healthy))
	w.eventually("a while in which nothing is written", func() error {
		version := dm.ResourceVersion
		time.Sleep(*idle)
		w.reported(dm, all-each, all)
		if dm.ResourceVersion != version {
			return errors.New("the model was written while nothing changed")
		}
		return nil
	})
	if after := total(slices.Concat(slowOnes, healthy)); after != before {
		t.Errorf("%d calls to engines that have the adapter", after-before)
	}
	for _, e := range dm.Status.Endpoints {
		if e.Ready == strings.Contains(e.Error, "it is not my day") {
			t.Errorf("endpoint %+v", e)
		}
	}
	summary.Line(t, "no call to %d loaded engines within %s", all-each, *idle)

	for _, e := range failing {
		e.set(func(e *engine) { e.failing = false })
	}
	w.reported(dm, all, all)
	for i, e := range w.engines {
		// A call is given up after a second if many are slow, and made again.
		if n := len(e.answered(http.MethodPost)); n < 1 || n > 3 {
			t.Errorf("engine %d was loaded %d times", i, n)
		}
	}
	w.remove(dm)
	w.holding(w.engines)
}

func total(engines []*engine) int {
	n := 0
	for _, e := range engines {
		n += len(e.answered(""))
	}
	return n
}

func TestAnAdapterFollowsItsModel(t *testing.T) {
	w := newWorld(t, 3)
	dm := w.lora("lora", "one", "s3://b/one")
	w.reported(dm, 3, 3)
	w.holding(w.engines, "one=s3://b/one")

	w.change(dm, func(s *v1alpha1.DynamoModelSpec) { s.ModelName = "two" })
	w.holding(w.engines, "two=s3://b/one")
	w.change(dm, func(s *v1alpha1.DynamoModelSpec) { s.Source.URI = "hf://org/two" })
	w.holding(w.engines, "two=hf://org/two")
	w.reported(dm, 3, 3)

	// A restarted engine has lost it and gets it again; the others are left alone.
	w.engines[1].set(func(e *engine) { clear(e.loaded) })
	calls := total(w.engines[:1])
	before := w.pods[1].DeepCopy()
	w.pods[1].Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "test://1", ExitCode: 1}
	if err := cluster.Client.Status().Patch(w.ctx, w.pods[1], client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.holding(w.engines, "two=hf://org/two")
	if total(w.engines[:1]) != calls {
		t.Error("an engine that was not restarted was called")
	}
	w.remove(dm)
	w.holding(w.engines)
}

// What the operator knew dies with it; the engines and the note on the model
// tell the next one.
func TestAnOperatorThatWasAway(t *testing.T) {
	w := newWorld(t, 3)
	dm := w.lora("lora", "one", "s3://b/one")
	w.reported(dm, 3, 3)
	operator.stop()
	w.change(dm, func(s *v1alpha1.DynamoModelSpec) { s.ModelName = "two" })
	w.engines[2].set(func(e *engine) { clear(e.loaded) })
	if err := operator.start(); err != nil {
		t.Fatal(err)
	}
	w.holding(w.engines, "two=s3://b/one")
	w.reported(dm, 3, 3)

	operator.stop()
	calls := total(w.engines)
	if err := operator.start(); err != nil {
		t.Fatal(err)
	}
	w.eventually("each engine to be asked what it has", func() error {
		if now := total(w.engines); now < calls+3 {
			return fmt.Errorf("%d calls", now-calls)
		}
		return nil
	})
	w.reported(dm, 3, 3)
	for _, e := range w.engines {
		if loads := slices.DeleteFunc(e.answered(http.MethodPost), func(c call) bool { return c.name != "two" }); len(loads) != 1 {
			t.Errorf("loaded %d times", len(loads))
		}
	}
	operator.stop()
	if err := cluster.Client.Delete(w.ctx, dm); err != nil {
		t.Fatal(err)
	}
	if err := operator.start(); err != nil {
		t.Fatal(err)
	}
	w.holding(w.engines)
}

func TestDeletionWaitsForNobodyForEver(t *testing.T) {
	w := newWorld(t, 3)
	w.restart(impatiently, seldom)
	defer w.restart(patiently, seldom)
	dm := w.lora("lora", "one", "s3://b/one")
	w.reported(dm, 3, 3)
	gate := make(chan struct{})
	defer close(gate)
	w.engines[0].set(func(e *engine) { e.gate = gate })
	w.remove(dm)
	w.holding(w.engines[1:])

	// Nor for what nobody could load in the first place.
	invalid := w.lora("other", "two", "s3://b/two")
	w.remove(invalid)
}

// An engine that hangs is asked for one model at a time: what is queued for it is
// not made once its model is gone, and what was under way is taken back.
func TestALoadThatWasQueuedIsNotMadeForAModelThatIsGone(t *testing.T) {
	w, other := newWorld(t, 1), newWorld(t, 1)
	w.restart(impatiently, seldom)
	defer w.restart(patiently, seldom)
	gate := make(chan struct{})
	w.engines[0].set(func(e *engine) { e.gate = gate })
	var models []*v1alpha1.DynamoModel
	for i := range 20 {
		models = append(models, w.lora(fmt.Sprintf("lora-%02d", i), fmt.Sprintf("adapter-%02d", i), "s3://b/a"))
	}
	dm := other.lora("lora", "one", "s3://b/one")
	other.reported(dm, 1, 1) // another namespace does not wait for it
	for _, dm := range models[1:] {
		if err := cluster.Client.Delete(w.ctx, dm); err != nil {
			t.Fatal(err)
		}
	}
	for _, dm := range models[1:] {
		w.gone(dm)
	}
	w.engines[0].set(func(e *engine) { e.gate = nil })
	close(gate)
	w.reported(models[0], 1, 1)
	w.holding(w.engines, "adapter-00=s3://b/a")
}

// restart has the operator run with other waits.
func (w *world) restart(unload, recheck time.Duration) {
	w.Helper()
	operator.stop()
	if err := errors.Join(operator.configure(unload, recheck), operator.start()); err != nil {
		w.Fatal(err)
	}
}

func TestModelsShareAnAdapter(t *testing.T) {
	w := newWorld(t, 2)
	a, b := w.lora("a", "one", "s3://b/one"), w.lora("b", "one", "s3://b/one")
	w.reported(a, 2, 2)
	w.reported(b, 2, 2)
	w.remove(a)
	w.holding(w.engines, "one=s3://b/one")

	// Of two sources of one name the older model's is used, until it goes.
	c := w.lora("c", "one", "s3://b/elsewhere")
	w.eventually("the rival to be told", func() error {
		if err := cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		for _, condition := range c.Status.Conditions {
			if condition.Reason == v1alpha1.ReasonNameConflict && condition.Status == metav1.ConditionFalse {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", c.Status.Conditions)
	})
	w.holding(w.engines, "one=s3://b/one")
	w.remove(b)
	w.holding(w.engines, "one=s3://b/elsewhere")
	w.reported(c, 2, 2)
	w.remove(c)
	w.holding(w.engines)
}

// A slice is written by whoever may write slices: it must not send the operator
// anywhere but to the pod that it names, in the model's own namespace.
func TestOnlyPodsOfTheNamespaceAreCalled(t *testing.T) {
	w, other := newWorld(t, 1), newWorld(t, 1)
	stranger := endpoint(w.pods[0])
	stranger.Addresses = []string{"10.77.0.1"}
	nobody := discoveryv1.Endpoint{Addresses: []string{"10.77.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
	foreign := endpoint(other.pods[0])
	s := w.slice("odd")
	s.Endpoints = []discoveryv1.Endpoint{stranger, nobody, foreign}
	if err := cluster.Client.Update(w.ctx, s); err != nil {
		t.Fatal(err)
	}
	dm := w.lora("lora", adapter, place)
	w.reported(dm, 1, 1)
	w.remove(dm)
	for _, address := range []string{"10.77.0.1", "10.77.0.2"} {
		if network.strayed(address) {
			t.Errorf("%s was called", address)
		}
	}
	if len(other.engines[0].answered("")) > 0 {
		t.Error("an engine of another namespace was called")
	}
}

func TestABaseModelIsServedWhereItRuns(t *testing.T) {
	w := newWorld(t, 2)
	dm := &v1alpha1.DynamoModel{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "base"},
		Spec:       v1alpha1.DynamoModelSpec{ModelName: base, BaseModelName: base},
	}
	w.create(dm)
	w.reported(dm, 2, 2)
	if len(dm.Finalizers) > 0 || total(w.engines) > 0 {
		t.Errorf("finalizers %v, %d calls", dm.Finalizers, total(w.engines))
	}
	w.remove(dm)
}
