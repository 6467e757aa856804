package controller

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/etcd"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	guards "github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/etcdserver"
)

// indexes hands an index to a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i.WithIndex(object, field, of)
	return nil
}

// component is one whose deletion waits for its keys.
func component(namespace, parent, service string, global bool) *v1alpha1.DynamoComponentDeployment {
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: parent + "-" + service, UID: types.UID(namespace + parent + service), Finalizers: []string{v1alpha1.Finalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "nvidia.com/v1alpha1", Kind: v1alpha1.KindDynamoGraphDeployment, Name: parent, UID: "g"}},
	}}
	dcd.Spec.ServiceName, dcd.Spec.GlobalDynamoNamespace = service, global
	return dcd
}

// TestAttackOnKeys: a tenant makes a component that registers where another's
// does, and deletes it. Everything runs as in the operator, over a real etcd. With
// the tag unguarded the attacks are seen to succeed without the guard.
func TestAttackOnKeys(t *testing.T) {
	bin := os.Getenv("PLAYGROUND_BIN")
	if bin == "" {
		t.Skip("PLAYGROUND_BIN is not set: there is no etcd to run")
	}
	server := etcdserver.Start(t, bin)
	held := server.Lease(t, 600)
	for rule, c := range map[string]struct {
		attacker, victim *v1alpha1.DynamoComponentDeployment
		// unseen is a victim of another operator's.
		unseen bool
		// gone is what goes even so.
		gone string
	}{
		"team/a-chat is not team-a/chat":                   {attacker: component("team", "a-chat", "decode", false), victim: component("team-a", "chat", "decode", false)},
		"the global Dynamo namespace is everybody's":       {attacker: component("team", "x", "decode", true), victim: component("other", "y", "decode", true)},
		"nor when the other belongs to another operator":   {attacker: component("team", "a-chat", "decode", false), victim: component("team-a", "chat", "decode", false), unseen: true},
		"what is left by an only owner is removed, unheld": {attacker: component("team", "solo", "decode", false), victim: component("team", "other", "decode", false), gone: "left"},
	} {
		for _, off := range []bool{false, true} {
			name := rule
			if off {
				name = "without the guard: " + rule
			}
			t.Run(name, func(t *testing.T) {
				if off {
					t.Setenv("DYNAMO_GUARDS_OFF", string(guards.OwnKeys))
				}
				if guards.OwnKeys.Off() != off {
					t.Skip("needs a build with the tag unguarded")
				}
				at := graph.RegistrationOf(c.attacker)
				left, registered := etcd.Tree(at.DynamoNamespace, at.Service)+"/left", etcd.Tree(at.DynamoNamespace, at.Service)+"/registered"
				server.Put(t, left)
				server.PutHeld(t, registered, held)
				objects := []client.Object{c.attacker.DeepCopy()}
				if !c.unseen {
					objects = append(objects, c.victim.DeepCopy())
				}
				remove(t, server, at, c.attacker, !c.unseen, objects...)

				want := []string{left, registered}
				switch {
				case off:
					want = nil
				case c.gone != "":
					want = []string{registered}
				}
				got, err := server.Keys()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
				server.Clear(t)
			})
		}
	}
}

// remove deletes a component and lets the operator end what that began.
func remove(t *testing.T, server *etcdserver.Server, at graph.Registration, dcd *v1alpha1.DynamoComponentDeployment, clusterWide bool, objects ...client.Object) {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...)
	if err := observe.IndexRegistrations(t.Context(), indexes{builder}); err != nil {
		t.Fatal(err)
	}
	cluster := builder.Build()
	applier, err := apply.New(cluster, cluster)
	if err != nil {
		t.Fatal(err)
	}
	store, err := etcd.New(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	f := Cleanup{
		Store: store, Others: observe.Registrations{Cached: cluster, ClusterWide: clusterWide}, Limit: time.Minute,
		Applier: applier, Events: events.NewFakeRecorder(3), Clock: clock.RealClock{}, Began: &FirstSeen{},
	}
	live := dcd.DeepCopy()
	if err := cluster.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); err != nil {
		t.Fatal(err)
	}
	if wait, err := f.Finalize(t.Context(), live, []graph.Registration{at}); wait != 0 || err != nil {
		t.Fatalf("wait %s, error %v", wait, err)
	}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(dcd), live); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the component is still held: %v", err)
	}
}
