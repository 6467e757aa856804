// Package chaos runs the operator's reconcilers under a deterministic scheduler
// that decides, from a seed, which event arrives when, which write fails and
// how, and between which two writes the operator dies. The same seed gives the
// same run, so a failure can be looked at as often as one likes.
package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/componentdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/graphdeployment"
)

// event is a change that the informers have not heard of yet.
type event struct {
	id     id
	object client.Object // nil is a deletion
}

// machine is a cluster in memory with the operator in it.
type machine struct {
	ctx    context.Context
	random *rand.Rand
	server *server
	cache  *store
	faults *faults
	// pending are events on their way to the informers, in order.
	pending []event
	// queue are passes that are due.
	queue []id
	// later are passes that are due after a time, in which the world goes on.
	later []id
	kinds map[string]reconcile.Reconciler
	// wrap lets a test break the operator's client.
	wrap func(client.Client) client.Client

	writes     int
	log        []string
	violations []string
	// ready are the images with which each Deployment once was ready.
	ready map[string]map[string]bool
}

func newMachine(seed uint64, wrap func(client.Client) client.Client) *machine {
	random := rand.New(rand.NewPCG(seed, 0))
	s := lean()
	m := &machine{
		ctx: context.Background(), random: random, wrap: wrap,
		server: newServer(s),
		cache:  &store{scheme: s, objects: map[id]client.Object{}},
		faults: &faults{random: random, kill: -1},
		ready:  map[string]map[string]bool{},
	}
	m.server.changed = func(i id, object client.Object) {
		m.pending = append(m.pending, event{i, object})
	}
	m.start()
	return m
}

// start begins a life of the operator, which remembers nothing of the last: its
// informers list everything, and everything is due.
func (m *machine) start() {
	var d client.Client = &door{Client: m.server.WithWatch, server: m.server, cache: m.cache, faults: m.faults, wrote: m.wrote}
	if m.wrap != nil {
		d = m.wrap(d)
	}
	direct := m.server.WithWatch
	applier, err := apply.New(d, direct, &corev1.Secret{}, &corev1.ConfigMap{})
	if err != nil {
		panic(err)
	}
	cfg := config.Default()
	facts := observe.Facts{Cached: d, Direct: direct}
	recorder := events.NewFakeRecorder(1 << 16)
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cleanup := controller.Cleanup{Applier: applier, Events: recorder, Clock: now, Began: &controller.FirstSeen{}}
	graphs, components := graphdeployment.Children(), componentdeployment.Children()
	m.kinds = map[string]reconcile.Reconciler{
		v1alpha1.KindDynamoGraphDeployment: reconcile.AsReconciler(d, &graphdeployment.Reconciler{
			Client: d, Observer: graphdeployment.Observer{Children: observe.New(d, graphs...), Claims: observe.New(d, graphdeployment.Claims()), Beneath: observe.New(d, graphdeployment.Beneath()...), Facts: facts},
			Applier: applier, Cleanup: cleanup, Events: recorder, Clock: now, Platform: cfg.Platform(),
		}),
		v1alpha1.KindDynamoComponentDeployment: reconcile.AsReconciler(d, &componentdeployment.Reconciler{
			Client: d, Observer: observe.New(d, components...), Facts: facts,
			Applier: applier, Cleanup: cleanup, Events: recorder, Clock: now, Platform: cfg.Platform(),
		}),
	}
	m.pending, m.queue, m.later = nil, nil, nil
	m.cache.objects = map[id]client.Object{}
	for _, i := range m.all() {
		m.cache.set(i, m.server.truth(m.ctx, i))
		m.due(i)
	}
}

// all are the objects that there really are.
func (m *machine) all() []id {
	var all []id
	for _, list := range lists() {
		if err := m.server.List(m.ctx, list); err != nil {
			panic(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			panic(err)
		}
		for _, item := range items {
			i, err := m.cache.identify(item.(client.Object))
			if err != nil {
				panic(err)
			}
			all = append(all, i)
		}
	}
	slices.SortFunc(all, compareID)
	return all
}

// lists are empty lists of every kind that is in play.
func lists() []client.ObjectList {
	all := []client.ObjectList{&v1alpha1.DynamoGraphDeploymentList{}}
	for _, child := range slices.Concat(graphdeployment.Children(), componentdeployment.Children()) {
		if child.List == nil || child.API != "" {
			continue
		}
		if !slices.ContainsFunc(all, func(l client.ObjectList) bool { return fmt.Sprintf("%T", l) == fmt.Sprintf("%T", child.List) }) {
			all = append(all, child.List.DeepCopyObject().(client.ObjectList))
		}
	}
	return all
}

// due has an object looked at, if it is one that the operator looks after.
func (m *machine) due(i id) {
	if m.kinds[i.kind.Kind] != nil && !slices.Contains(m.queue, i) {
		m.queue = append(m.queue, i)
	}
}

// deliver hands the informers one event. Those of one object keep their order;
// one that a later event follows may be left out, as a watch that was broken
// leaves it out; one may come twice.
func (m *machine) deliver(chaotic bool) {
	at := 0
	if chaotic {
		at = m.random.IntN(len(m.pending))
		for n, e := range m.pending[:at] {
			if e.id == m.pending[at].id {
				at = n // an object's past comes first
				break
			}
		}
	}
	e := m.pending[at]
	m.pending = slices.Delete(m.pending, at, at+1)
	if chaotic && m.random.IntN(10) == 0 && slices.ContainsFunc(m.pending, func(later event) bool { return later.id == e.id }) {
		return
	}
	before := m.cache.objects[e.id]
	m.cache.set(e.id, e.object)
	m.wake(e.id, before)
	m.wake(e.id, e.object)
	if chaotic && m.random.IntN(10) == 0 {
		m.wake(e.id, e.object)
	}
}

// wake has an object and its owners looked at.
func (m *machine) wake(i id, object client.Object) {
	m.due(i)
	if object == nil {
		return
	}
	for _, owner := range object.GetOwnerReferences() {
		key := client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}
		m.due(id{v1alpha1.SchemeGroupVersion.WithKind(owner.Kind), key})
	}
}

// pass runs one pass that is due. A pass that fails, or asks to be called again,
// is due again after a time; one that is killed ends the operator's life.
func (m *machine) pass(chaotic bool) {
	at := 0
	if chaotic {
		at = m.random.IntN(len(m.queue))
	}
	i := m.queue[at]
	m.queue = slices.Delete(m.queue, at, at+1)
	defer func() {
		if cause := recover(); cause != nil {
			if _, meant := cause.(killed); !meant {
				panic(cause)
			}
			m.note("killed in a pass over %s", i)
			m.faults.kill = -1
			m.start()
		}
	}()
	result, err := m.kinds[i.kind.Kind].Reconcile(m.ctx, reconcile.Request{NamespacedName: i.key})
	if err != nil {
		m.note("pass over %s: %v", i, err)
	}
	if err != nil || result.RequeueAfter > 0 {
		m.later = append(m.later, i)
	}
}

// wait lets time pass for those who wait for it.
func (m *machine) wait() {
	for _, i := range m.later {
		m.due(i)
	}
	m.later = nil
}

func (m *machine) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *machine) lie(format string, args ...any) {
	m.violations = append(m.violations, fmt.Sprintf(format, args...))
}

// wrote judges a write of the operator while the truth is at hand.
func (m *machine) wrote(verb string, i id, existed bool) {
	m.writes++
	m.note("%s %s", verb, i)
	switch {
	case verb == "apply" && !existed:
		m.madeForSomebody(i)
	case verb == "delete":
		m.wantedNoMore(i)
	case verb == "report":
		m.trueReport(i)
	}
}

// madeForSomebody: nothing is made for an owner that is gone.
func (m *machine) madeForSomebody(i id) {
	object := m.server.truth(m.ctx, i)
	if object == nil {
		return
	}
	for _, reference := range object.GetOwnerReferences() {
		owner := m.server.truth(m.ctx, id{v1alpha1.SchemeGroupVersion.WithKind(reference.Kind), client.ObjectKey{Namespace: i.key.Namespace, Name: reference.Name}})
		if owner == nil || owner.GetUID() != reference.UID {
			m.lie("%s is made for %s, which is gone", i, reference.Name)
		}
	}
}

// wantedNoMore: a Deployment is deleted only if no graph wants its service.
func (m *machine) wantedNoMore(i id) {
	if i.kind.Kind != "Deployment" && i.kind.Kind != v1alpha1.KindDynamoComponentDeployment {
		return
	}
	for _, g := range m.graphs() {
		for name := range g.Spec.Services {
			if childName(g.Name, name) == i.key.Name {
				m.lie("%s is deleted, but %s wants it", i, g.Name)
			}
		}
	}
}

// trueReport: a graph that is said to be ready has been, with the images of the
// generation that the report is about.
func (m *machine) trueReport(i id) {
	g, isGraph := m.server.truth(m.ctx, i).(*v1alpha1.DynamoGraphDeployment)
	if !isGraph || g == nil || g.Status.ObservedGeneration != g.Generation || !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) {
		return
	}
	for name, service := range g.Spec.Services {
		deployment := childName(g.Name, name)
		if image := service.ExtraPodSpec.MainContainer.Image; !m.ready[deployment][image] {
			m.lie("%s is said to be ready, but %s never was with %s", g.Name, deployment, image)
		}
	}
}

func (m *machine) graphs() []v1alpha1.DynamoGraphDeployment {
	var list v1alpha1.DynamoGraphDeploymentList
	if err := m.server.List(m.ctx, &list); err != nil {
		panic(err)
	}
	return list.Items
}

func childName(graph, service string) string { return graph + "-" + strings.ToLower(service) }

// world is everything that is not the operator: it rolls Deployments out and
// collects what has lost its owner. It reports whether it did something.
func (m *machine) world() bool {
	busy := false
	for _, i := range m.all() {
		object := m.server.truth(m.ctx, i)
		if object == nil {
			continue
		}
		if m.orphaned(object) {
			m.must(m.server.change(m.ctx, i, func() error { return m.server.WithWatch.Delete(m.ctx, object) }))
			busy = true
			continue
		}
		if d, ok := object.(*appsv1.Deployment); ok && m.rollOut(i, d) {
			busy = true
		}
	}
	return busy
}

func (m *machine) orphaned(object client.Object) bool {
	if len(object.GetOwnerReferences()) == 0 {
		return false
	}
	for _, reference := range object.GetOwnerReferences() {
		owner := m.server.truth(m.ctx, id{v1alpha1.SchemeGroupVersion.WithKind(reference.Kind), client.ObjectKey{Namespace: object.GetNamespace(), Name: reference.Name}})
		if owner != nil && owner.GetUID() == reference.UID {
			return false
		}
	}
	return true
}

// rollOut brings a Deployment one step nearer to its spec.
func (m *machine) rollOut(i id, d *appsv1.Deployment) bool {
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	next := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: wanted, UpdatedReplicas: wanted, ReadyReplicas: wanted, AvailableReplicas: wanted,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	if d.Status.ObservedGeneration < d.Generation {
		next.UpdatedReplicas, next.ReadyReplicas, next.AvailableReplicas = 0, 0, 0
		next.Conditions[0].Status = corev1.ConditionFalse
	} else if d.Status.UpdatedReplicas == wanted && d.Status.AvailableReplicas == wanted && d.Status.Replicas == wanted {
		return false
	}
	d.Status = next
	m.must(m.server.change(m.ctx, i, func() error { return m.server.WithWatch.Status().Update(m.ctx, d) }))
	if next.UpdatedReplicas == wanted {
		if m.ready[d.Name] == nil {
			m.ready[d.Name] = map[string]bool{}
		}
		m.ready[d.Name][d.Spec.Template.Spec.Containers[0].Image] = true
	}
	return true
}

func (m *machine) must(err error) {
	if err != nil {
		panic(err)
	}
}
