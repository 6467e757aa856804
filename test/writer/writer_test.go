package writer

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

func TestTwoOperatorsOfOneNamespace(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace("team")
	first := w.operate("first", settings{namespaces: []string{ns}})
	w.says(first, "Lease acquired")
	second := w.operate("second", settings{namespaces: []string{ns}})
	w.says(second, "waiting for the Lease", installation.Namespace+"/"+first.name)
	for range 5 {
		w.made(ns, w.make(ns))
	}
	w.order(ns, first)
	w.stop(first)
	w.made(ns, w.make(ns))
	w.order(ns, first, second)
}

func TestTwoOperatorsOfOneNamespaceWithoutGuard(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace("team")
	for _, name := range []string{"first", "second"} {
		w.operate(name, settings{namespaces: []string{ns}, off: []guard.Guard{namespacescope.GuardIdentity}})
	}
	w.fights(ns)
}

// paused stops the leader of two replicas while it works, for longer than its Lease,
// and has it go on when the other leads.
func paused(t *testing.T, off ...guard.Guard) (w *world, ns string, leader, next *operator) {
	w = newWorld(t)
	ns = w.namespace("team")
	s := settings{namespaces: []string{ns}, election: ns, off: off, slow: true}
	leader = w.operate("leader", s)
	w.says(leader, "Lease acquired")
	s.slow = false
	next = w.operate("next", s)
	w.wrote(leader, w.busy(ns))
	w.signal(leader, syscall.SIGSTOP)
	w.wrote(next, ns)
	w.busy(ns)
	w.signal(leader, syscall.SIGCONT)
	return w, ns, leader, next
}

// busy gives a namespace more to do than is done in a moment.
func (w *world) busy(ns string) string {
	w.Helper()
	for range 20 {
		w.make(ns)
	}
	return ns
}

func TestAPausedLeader(t *testing.T) {
	w, ns, leader, next := paused(t)
	w.gone(leader)
	w.made(ns, w.make(ns))
	w.order(ns, leader, next)
}

func TestAPausedLeaderWithoutGuard(t *testing.T) {
	w, ns, leader, next := paused(t, namespacescope.GuardWriter)
	w.gone(leader)
	turns := w.turns(ns)
	if len(turns) < 3 {
		t.Fatalf("written by %v, want the old leader %s after %s", turns, leader.name, next.name)
	}
	t.Logf("without the guard: %v", turns[:3])
}

func TestTwoOperatorsOfTheWholeCluster(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace("team")
	first := w.operate("first", settings{election: "first-" + ns})
	w.wrote(first, w.busy(ns))
	second := w.operate("second", settings{election: "second-" + ns})
	w.says(second, "waiting for the Lease", installation.Namespace+"/"+first.name)
	w.made(ns, w.make(ns))
	w.order(ns, first)
	w.stop(first)
	w.made(ns, w.make(ns))
	w.order(ns, first, second)
}

func TestTwoOperatorsOfTheWholeClusterWithoutGuard(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace("team")
	for _, name := range []string{"first", "second"} {
		w.operate(name, settings{election: name + "-" + ns, off: []guard.Guard{namespacescope.GuardCluster}})
	}
	w.fights(ns)
}

// TestANamespaceChangesHands gives a namespace that the operator of the cluster works
// on to one of its own, and takes it back.
func TestANamespaceChangesHands(t *testing.T) {
	w := newWorld(t)
	ns, other := w.namespace("team"), w.namespace("other")
	all := w.operate("all", settings{slow: true})
	w.wrote(all, w.busy(ns))
	team := w.operate("team", settings{namespaces: []string{ns}})
	w.wrote(team, w.busy(ns))
	w.made(ns, w.make(ns))
	w.order(ns, all, team)
	w.wrote(all, w.busy(other)) // what is left goes on
	w.stop(team)
	w.made(ns, w.make(ns))
	w.order(ns, all, team, all)
	w.order(other, all)
}

// taken has an operator of the cluster stopped while it works, its namespace taken
// over, and the operator go on.
func taken(t *testing.T, off ...guard.Guard) (w *world, ns string, all, team *operator) {
	w = newWorld(t)
	ns = w.namespace("team")
	all = w.operate("all", settings{slow: true, off: off})
	w.wrote(all, w.busy(ns))
	w.signal(all, syscall.SIGSTOP)
	team = w.operate("team", settings{namespaces: []string{ns}, off: off})
	w.wrote(team, ns)
	w.signal(all, syscall.SIGCONT)
	return w, ns, all, team
}

func TestAPausedOperatorOfTheClusterLosesANamespace(t *testing.T) {
	w, ns, all, team := taken(t)
	other := w.namespace("other")
	w.wrote(all, w.busy(other)) // it has come to itself
	w.made(ns, w.make(ns))
	w.order(ns, all, team)
}

func TestAPausedOperatorOfTheClusterLosesANamespaceWithoutGuard(t *testing.T) {
	for _, off := range []guard.Guard{namespacescope.GuardWriter, namespacescope.GuardHandOver} {
		t.Run(string(off), func(t *testing.T) {
			if off == namespacescope.GuardHandOver && !*shipped {
				t.Skip("whether two write depends on who is faster: make writers tries it")
			}
			w, ns, _, _ := taken(t, off)
			w.fights(ns)
		})
	}
}

// TestClocksThatAreMinutesWrong has operators whose clocks are five minutes off, in
// either direction, wait for each other as if they were not.
func TestClocksThatAreMinutesWrong(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace("team")
	slow := w.operate("slow", settings{namespaces: []string{ns}, clock: "-5m"})
	w.says(slow, "Lease acquired")
	fast := w.operate("fast", settings{namespaces: []string{ns}, clock: "5m"})
	w.says(fast, "waiting for the Lease", installation.Namespace+"/"+slow.name)
	all := w.operate("all", settings{clock: "5m"})
	w.says(all, "Lease acquired")
	other := w.namespace("other")
	w.wrote(all, w.busy(other))
	for range 5 {
		w.made(ns, w.make(ns))
	}
	w.order(ns, slow)
	w.signal(slow, syscall.SIGKILL)
	w.gone(slow)
	w.made(ns, w.make(ns))
	if turns := w.turns(ns); len(turns) < 2 || turns[0] != slow.name {
		t.Errorf("written by %v", turns)
	}
}

func TestClocksThatAreMinutesWrongWithoutGuard(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace("team")
	off := []guard.Guard{namespacescope.GuardClock}
	w.operate("slow", settings{namespaces: []string{ns}, clock: "-5m", off: off})
	w.operate("all", settings{clock: "5m", off: off})
	w.fights(ns)
}

// deleted has one of three namespaces of an operator deleted while it works on all.
func deleted(t *testing.T, off ...guard.Guard) (w *world, o *operator, gone string, left []string) {
	w = newWorld(t)
	var three []string
	for _, name := range []string{"one", "two", "three"} {
		three = append(three, w.namespace(name))
	}
	o = w.operate("team", settings{namespaces: three, off: off})
	for _, ns := range three {
		w.made(ns, w.make(ns))
	}
	if err := cluster.Client.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: three[1]}}); err != nil {
		t.Fatal(err)
	}
	// Nobody plays the controller that empties a namespace but this test.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: three[1], Name: namespacescope.LeaseName}}
	if err := cluster.Client.Delete(w.ctx, lease); err != nil {
		t.Fatal(err)
	}
	w.says(o, "namespace is being deleted", three[1])
	return w, o, three[1], []string{three[0], three[2]}
}

// TestANamespaceThatIsDeletedIsTheOnlyOneLost: of three, the others go on, in the same
// process.
func TestANamespaceThatIsDeletedIsTheOnlyOneLost(t *testing.T) {
	w, o, _, left := deleted(t)
	for _, ns := range left {
		before := w.renewed(ns)
		w.eventually("the Lease of "+ns+" to be renewed", func(context.Context) error {
			if at := w.renewed(ns); !at.After(before) {
				return errors.New("it was not yet")
			}
			return nil
		})
		w.made(ns, w.make(ns))
		w.order(ns, o)
	}
	select {
	case <-o.ended:
		t.Error("the operator has ended")
	default:
	}
}

// TestANamespaceThatIsDeletedIsTheOnlyOneLostWithoutGuard: who may delete a namespace
// ends the operator of others.
func TestANamespaceThatIsDeletedIsTheOnlyOneLostWithoutGuard(t *testing.T) {
	w, o, gone, _ := deleted(t, namespacescope.GuardSeparate)
	w.gone(o)
	t.Logf("without the guard the operator of three namespaces ended with %s", gone)
}

// renewed is when a namespace's Lease was, by its holder's clock.
func (w *world) renewed(ns string) time.Time {
	w.Helper()
	lease := &coordinationv1.Lease{}
	if err := cluster.Client.Get(w.ctx, types.NamespacedName{Namespace: ns, Name: namespacescope.LeaseName}, lease); err != nil {
		w.Fatal(err)
	}
	if lease.Spec.RenewTime == nil {
		w.Fatal(fmt.Errorf("lease %s has no renewal", ns))
	}
	return lease.Spec.RenewTime.Time
}
