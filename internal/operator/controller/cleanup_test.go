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
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// keyStore is a store that answers, or does not.
type keyStore struct {
	err     error
	deleted []string
}

func (s *keyStore) DeleteLeft(_ context.Context, dynamoNamespace, service string) (int64, error) {
	s.deleted = append(s.deleted, dynamoNamespace+"/"+service)
	return 1, s.err
}

// nobody else registers anywhere.
type nobody struct{}

func (nobody) Shared(context.Context, graph.Registration) (bool, error) { return false, nil }

var registered = []graph.Registration{{Namespace: "n", Graph: "c", DynamoNamespace: "n-c", Service: "c"}}

func TestFinalize(t *testing.T) {
	began := time.Unix(1000, 0)
	const limit = time.Minute
	for rule, c := range map[string]struct {
		err      error
		held     bool
		ahead    time.Duration // of the API server's clock
		after    time.Duration // the deletion was first seen
		released bool
		events   int
	}{
		"keys are removed and the object is released":         {held: true, released: true},
		"a store that does not answer holds it up":            {held: true, err: errors.New("no leader"), after: 10 * time.Second},
		"but not for longer than the limit":                   {held: true, err: errors.New("no leader"), after: limit + time.Second, released: true, events: 1},
		"an object that was never held goes by itself":        {released: true},
		"an API server whose clock is ahead shortens nothing": {held: true, err: errors.New("no leader"), ahead: time.Hour, after: 10 * time.Second},
		"nor does one whose clock is behind":                  {held: true, err: errors.New("no leader"), ahead: -time.Hour, after: 10 * time.Second},
		"nor lengthens it":                                    {held: true, err: errors.New("no leader"), ahead: time.Hour, after: limit + time.Second, released: true, events: 1},
	} {
		t.Run(rule, func(t *testing.T) {
			dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "c", UID: "u", DeletionTimestamp: &metav1.Time{Time: began.Add(c.ahead)}, Finalizers: []string{"somebody.else/promise"},
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
			f := Cleanup{Store: &keyStore{err: c.err}, Limit: limit, Applier: applier, Events: recorder, Clock: testclock.NewFakePassiveClock(began.Add(c.after)), Began: &FirstSeen{}, Others: nobody{}}
			f.Began.Time("u", began)
			live := &v1alpha1.DynamoComponentDeployment{}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); err != nil {
				t.Fatal(err)
			}
			wait, err := f.Finalize(t.Context(), live, registered)
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
		store  KeyStore
		places []graph.Registration
		before []string
		held   bool
	}{
		"it has keys":                         {store: &keyStore{}, places: registered, held: true},
		"it has none":                         {store: &keyStore{}},
		"the operator knows no store":         {places: registered},
		"an earlier operator held everything": {store: &keyStore{}, before: []string{v1alpha1.Finalizer}},
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
			if _, err := applier.Apply(t.Context(), live, apply.Plan{Finalizer: Cleanup{Store: c.store}.Needed(c.places)}); err != nil {
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
