package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// baseModelHash indexes EndpointSlices and models by the base model, so that a
// reconcile over one model costs what that model has.
const baseModelHash = "baseModelHash"

// PodAddress has only pods of the model's own namespace called: a slice is written
// by whoever may write slices, and could name any address.
const PodAddress guard.Guard = "pod-address"

// Models reads what surrounds a model.
type Models struct {
	Reader client.Reader
}

// modelIndexes are the kinds that are looked up by base model.
var modelIndexes = []struct {
	of client.Object
	by client.IndexerFunc
}{
	{&discoveryv1.EndpointSlice{}, func(o client.Object) []string { return []string{o.GetLabels()[v1alpha1.LabelBaseModelHash]} }},
	{&v1alpha1.DynamoModel{}, func(o client.Object) []string {
		return []string{graph.ModelHash(o.(*v1alpha1.DynamoModel).Spec.BaseModelName)}
	}},
}

// IndexModels prepares the informers' stores for Models.
func IndexModels(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range modelIndexes {
		if err := indexer.IndexField(ctx, index.of, baseModelHash, index.by); err != nil {
			return fmt.Errorf("index %T by base model: %w", index.of, err)
		}
	}
	return nil
}

// OfBase names the models of a namespace with the given hash of a base model.
func (m Models) OfBase(ctx context.Context, namespace, hash string) ([]types.NamespacedName, error) {
	list, err := m.ofBase(ctx, namespace, hash)
	var keys []types.NamespacedName
	for i := range list {
		keys = append(keys, client.ObjectKeyFromObject(&list[i]))
	}
	return keys, err
}

func (m Models) ofBase(ctx context.Context, namespace, hash string) ([]v1alpha1.DynamoModel, error) {
	var list v1alpha1.DynamoModelList
	err := m.Reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{baseModelHash: hash})
	if err != nil {
		return nil, fmt.Errorf("list models of %s by base model: %w", namespace, err)
	}
	return list.Items, nil
}

// Current is a model as the informers have it now; nil if it is gone, or another of
// the same name.
func (m Models) Current(ctx context.Context, dm *v1alpha1.DynamoModel) (*v1alpha1.DynamoModel, error) {
	now := &v1alpha1.DynamoModel{}
	err := m.Reader.Get(ctx, client.ObjectKeyFromObject(dm), now)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read DynamoModel %s/%s: %w", dm.Namespace, dm.Name, err)
	}
	if err != nil || now.UID != dm.UID {
		return nil, nil
	}
	return now, nil
}

// World reads the endpoints of a model's base and what other models want of
// them. Only slices of the model's own namespace are looked at.
func (m Models) World(ctx context.Context, dm *v1alpha1.DynamoModel) (w loraplan.World, err error) {
	hash := graph.ModelHash(dm.Spec.BaseModelName)
	var slicesOfBase discoveryv1.EndpointSliceList
	err = m.Reader.List(ctx, &slicesOfBase, client.InNamespace(dm.Namespace), client.MatchingFields{baseModelHash: hash})
	if err != nil {
		return w, fmt.Errorf("list endpoints of %s: %w", dm.Spec.BaseModelName, err)
	}
	byPod, services := map[types.UID]loraplan.Endpoint{}, map[string]bool{}
	for _, slice := range slicesOfBase.Items {
		if service := slice.Labels[discoveryv1.LabelServiceName]; service != "" {
			services[service] = true
		}
		for _, endpoint := range slice.Endpoints {
			if err := m.add(ctx, byPod, dm.Namespace, endpoint); err != nil {
				return w, err
			}
		}
	}
	w.Services = slices.Sorted(maps.Keys(services))
	w.Endpoints = slices.SortedFunc(maps.Values(byPod), func(a, b loraplan.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Run, b.Run))
	})
	siblings, err := m.ofBase(ctx, dm.Namespace, hash)
	if err != nil {
		return w, err
	}
	claims(&w, dm, siblings)
	return w, nil
}

// add takes an endpoint in if it is the address of a pod that serves the base
// model. A pod with two addresses is one engine.
func (m Models) add(ctx context.Context, byPod map[types.UID]loraplan.Endpoint, namespace string, e discoveryv1.Endpoint) error {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || len(e.Addresses) == 0 {
		return nil
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil {
		return nil // a name; pods have addresses
	}
	p := &corev1.Pod{}
	err = m.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: e.TargetRef.Name}, p)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for Pod %s/%s: %w", namespace, e.TargetRef.Name, err)
	}
	if err != nil || (e.TargetRef.UID != "" && e.TargetRef.UID != p.UID) || follower(p) || !has(p, address) {
		return nil // gone, not seen yet, or not a pod's own address; its watch wakes us
	}
	if known, found := byPod[p.UID]; found && (known.Address.String() == p.Status.PodIP || address.String() != p.Status.PodIP) {
		return nil
	}
	terminating := e.Conditions.Terminating != nil && *e.Conditions.Terminating
	byPod[p.UID] = loraplan.Endpoint{
		Address: address, Pod: p.Name, Run: RunOf(p),
		Ready:   e.Conditions.Ready == nil || *e.Conditions.Ready,
		Leaving: terminating || p.DeletionTimestamp != nil,
	}
	return nil
}

// RunOf names the life of a pod's engine that goes on now: by the one before it,
// which is part of what the stores keep of a pod. Which container is the engine
// is told by its name; where none has it, any may be.
func RunOf(p *corev1.Pod) loraplan.Run {
	isMain := func(c corev1.ContainerStatus) bool { return c.Name == "main" }
	named := slices.ContainsFunc(p.Status.ContainerStatuses, isMain)
	var run strings.Builder
	run.WriteString(string(p.UID))
	for _, c := range p.Status.ContainerStatuses {
		if last := c.LastTerminationState.Terminated; last != nil && (isMain(c) || !named) {
			run.WriteString("/" + last.ContainerID)
		}
	}
	return loraplan.Run(run.String())
}

// follower is a pod that lends its node to a leader and serves no API.
func follower(p *corev1.Pod) bool {
	return p.Labels[v1alpha1.LabelGroupRole] == v1alpha1.RoleWorker || grove.Follower(p.Labels)
}

// has is true for an address that is really the pod's.
func has(p *corev1.Pod, address netip.Addr) bool {
	return PodAddress.Off() || slices.ContainsFunc(p.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == address.String() }) ||
		p.Status.PodIP == address.String()
}

// claims adds what other models of the same base want of its engines, and what
// these may hold for them.
func claims(w *loraplan.World, dm *v1alpha1.DynamoModel, siblings []v1alpha1.DynamoModel) {
	fromElsewhere := func(a loraplan.Adapter) bool {
		return dm.Spec.Source != nil && a.Name == dm.Spec.ModelName && a.URI != dm.Spec.Source.URI
	}
	for i := range siblings {
		s := &siblings[i]
		if s.UID == dm.UID || s.Spec.ModelType != v1alpha1.ModelTypeLoRA || s.Spec.Source == nil || s.Spec.BaseModelName != dm.Spec.BaseModelName {
			continue
		}
		wanted := loraplan.Adapter{Name: s.Spec.ModelName, URI: s.Spec.Source.URI}
		loses := older(dm, s) && fromElsewhere(wanted)
		if s.DeletionTimestamp == nil && !loses {
			w.Shared = append(w.Shared, wanted)
		}
		if older(s, dm) && fromElsewhere(wanted) {
			w.Rival = s.Name
		}
		if slices.ContainsFunc(loraplan.DecodeNote(s.Annotations[v1alpha1.AnnotationLoadedAdapters]), fromElsewhere) {
			w.Holder = s.Name
		}
	}
	w.Shared = loraplan.Sorted(w.Shared)
}

func older(a, b *v1alpha1.DynamoModel) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
