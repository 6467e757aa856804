package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/scheme"
)

// shelf is a store that answers, or does not.
type shelf struct {
	err     error
	deleted []string
}

func (s *shelf) DeleteTree(_ context.Context, key string) (int64, error) {
	s.deleted = append(s.deleted, key)
	return 1, s.err
}

func TestFarewell(t *testing.T) {
	began := time.Unix(1000, 0)
	const limit = time.Minute
	for rule, c := range map[string]struct {
		err      error
		held     bool
		after    time.Duration
		released bool
		events   int
	}{
		"keys are removed and the object is released":  {held: true, released: true},
		"a store that does not answer holds it up":     {held: true, err: errors.New("no leader"), after: 10 * time.Second},
		"but not for longer than the limit":            {held: true, err: errors.New("no leader"), after: limit + time.Second, released: true, events: 1},
		"an object that was never held goes by itself": {released: true},
	} {
		t.Run(rule, func(t *testing.T) {
			dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "c", DeletionTimestamp: &metav1.Time{Time: began}, Finalizers: []string{"somebody.else/promise"},
			}}
			if c.held {
				dcd.Finalizers = append(dcd.Finalizers, v1alpha1.Finalizer)
			}
			cluster := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(dcd).Build()
			applier, err := apply.New(cluster, cluster)
			if err != nil {
				t.Fatal(err)
			}
			recorder := events.NewFakeRecorder(3)
			f := Farewell{Store: &shelf{err: c.err}, Limit: limit, Applier: applier, Events: recorder, Clock: testclock.NewFakePassiveClock(began.Add(c.after))}
			live := &v1alpha1.DynamoComponentDeployment{}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); err != nil {
				t.Fatal(err)
			}
			wait, err := f.Keep(t.Context(), live, []string{"/n/components/c"})
			if known, is := fault.From(err); (wait > 0) == c.released || (wait > 0) != (is && known.Reason == v1alpha1.ReasonFinalizerFailed) {
				t.Errorf("wait %s, error %v", wait, err)
			}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); err != nil {
				t.Fatal(err)
			}
			if held := slices.Contains(live.Finalizers, v1alpha1.Finalizer); held == c.released {
				t.Errorf("finalizers %v", live.Finalizers)
			}
			if len(recorder.Events) != c.events {
				t.Errorf("%d events", len(recorder.Events))
			}
		})
	}
}

func TestOnlyWhatUsesTheStoreIsHeld(t *testing.T) {
	for rule, c := range map[string]struct {
		store  Trees
		trees  []string
		before []string
		held   bool
	}{
		"it has keys":                         {store: &shelf{}, trees: []string{"/n/components/c"}, held: true},
		"it has none":                         {store: &shelf{}},
		"the operator knows no store":         {trees: []string{"/n/components/c"}},
		"an earlier operator held everything": {store: &shelf{}, before: []string{v1alpha1.Finalizer}},
	} {
		t.Run(rule, func(t *testing.T) {
			dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", Finalizers: c.before}}
			cluster := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(dcd).Build()
			applier, err := apply.New(cluster, cluster)
			if err != nil {
				t.Fatal(err)
			}
			live := &v1alpha1.DynamoComponentDeployment{}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); err != nil {
				t.Fatal(err)
			}
			if err := (Farewell{Store: c.store, Applier: applier}).Promise(t.Context(), live, c.trees); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); err != nil {
				t.Fatal(err)
			}
			if held := slices.Contains(live.Finalizers, v1alpha1.Finalizer); held != c.held {
				t.Errorf("finalizers %v", live.Finalizers)
			}
		})
	}
}
