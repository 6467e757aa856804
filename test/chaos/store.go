package chaos

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// id names an object.
type id struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

func (i id) String() string { return i.kind.Kind + " " + i.key.String() }

func compareID(a, b id) int { return cmp.Compare(a.String(), b.String()) }

// store is what the operator's informers hold: as old as the last event that
// they were sent.
type store struct {
	scheme  *runtime.Scheme
	objects map[id]client.Object
}

func (s *store) identify(object client.Object) (id, error) {
	kind, err := apiutil.GVKForObject(object, s.scheme)
	return id{kind, client.ObjectKeyFromObject(object)}, err
}

// set takes an event in; nil is a deletion.
func (s *store) set(i id, object client.Object) {
	if object == nil {
		delete(s.objects, i)
		return
	}
	s.objects[i] = object
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, s.scheme)
	if err != nil {
		return err
	}
	held := s.objects[id{kind, key}]
	if held == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(held.DeepCopyObject()).Elem())
	return nil
}

// List knows the selectors that the operator uses: namespace, labels, owner and
// whom an account is for.
func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(into, s.scheme)
	if err != nil {
		return err
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	var o client.ListOptions
	o.ApplyOptions(options)
	var items []runtime.Object
	for _, i := range s.sorted() {
		object := s.objects[i]
		if i.kind != kind || (o.Namespace != "" && i.key.Namespace != o.Namespace) {
			continue
		}
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if o.FieldSelector != nil {
			owner, byOwner := o.FieldSelector.RequiresExactMatch("metadata.ownerUID")
			whom, byUse := o.FieldSelector.RequiresExactMatch("metadata.forPods")
			switch {
			case !byOwner && !byUse:
				return fmt.Errorf("list %s by %s: the store has no such index", kind.Kind, o.FieldSelector)
			case byOwner && !owned(object, types.UID(owner)), byUse && object.GetLabels()[v1alpha1.LabelComponentPod] != whom:
				continue
			}
		}
		items = append(items, object.DeepCopyObject())
	}
	return meta.SetList(into, items)
}

func (s *store) sorted() []id {
	all := make([]id, 0, len(s.objects))
	for i := range s.objects {
		all = append(all, i)
	}
	slices.SortFunc(all, compareID)
	return all
}

func owned(object client.Object, by types.UID) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == by {
			return true
		}
	}
	return false
}
