// Package observe is the only reader of the cluster: it turns what the informers
// hold into snapshots and facts. It decides nothing.
package observe

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// ownerUID indexes objects by their owners, so that a reconcile over one owner costs
// what that owner has, not what the cluster has.
const ownerUID = "metadata.ownerUID"

// Child is a kind of child: an empty object and an empty list of it. Children of
// a kind without a list are watched, but not read as the owner's.
type Child struct {
	Object client.Object
	List   client.ObjectList
	// API is the optional API that the kind is of; empty for one that every
	// cluster serves.
	API snapshot.API
}

// Index prepares the informers' stores for Observers of the given children.
func Index(ctx context.Context, indexer client.FieldIndexer, children ...Child) error {
	done := map[reflect.Type]bool{}
	for _, c := range children {
		kind := reflect.TypeOf(c.Object)
		if done[kind] {
			continue // several owners have children of one kind
		}
		done[kind] = true
		if err := indexer.IndexField(ctx, c.Object, ownerUID, ownersOf); err != nil {
			return fmt.Errorf("index %T by owner: %w", c.Object, err)
		}
	}
	return nil
}

func ownersOf(object client.Object) []string {
	var uids []string
	for _, ref := range object.GetOwnerReferences() {
		uids = append(uids, string(ref.UID))
	}
	// A tenant's label must not make anything else a child, which would be pruned.
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Labels[v1alpha1.LabelGraphUID] != "" {
		uids = append(uids, claim.Labels[v1alpha1.LabelGraphUID])
	}
	return uids
}

// Observer reads the children of one kind of owner.
type Observer struct {
	reader   client.Reader
	children []Child
}

// New makes an Observer of kinds of children that Index has prepared.
func New(reader client.Reader, children ...Child) *Observer {
	return &Observer{reader: reader, children: children}
}

// Children reads everything that owner owns. Kinds of APIs that the cluster
// lacks have no objects.
func (o *Observer) Children(ctx context.Context, owner client.Object, have snapshot.Capabilities) (snapshot.Snapshot, error) {
	var s snapshot.Snapshot
	for _, child := range o.children {
		if child.List == nil || (child.API != "" && !have[child.API]) {
			continue
		}
		list := child.List.DeepCopyObject().(client.ObjectList)
		err := o.reader.List(ctx, list, client.InNamespace(owner.GetNamespace()),
			client.MatchingFields{ownerUID: string(owner.GetUID())})
		if err != nil {
			return snapshot.Snapshot{}, fmt.Errorf("list children of %s as %T: %w", client.ObjectKeyFromObject(owner), list, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return snapshot.Snapshot{}, err
		}
		start := len(s.Owned)
		for _, item := range items {
			s.Owned = append(s.Owned, item.(graph.Object))
		}
		slices.SortFunc(s.Owned[start:], func(a, b graph.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	}
	return s, nil
}
