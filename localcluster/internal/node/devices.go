package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceapply "k8s.io/client-go/applyconfigurations/resource/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
)

// offer publishes the devices of the nodes, as a driver does on each of them. The
// beat of a node's heart repairs what somebody has deleted or changed.
type offer struct {
	client kubernetes.Interface
	counts device.Counts
	known  resourcelisters.ResourceSliceLister
}

// offerDevices follows the ResourceSlices that there are; hearts keep them right.
func (f *fleet) offerDevices(ctx context.Context) error {
	informer := resourceinformers.NewResourceSliceInformer(f.client, 0, cache.Indexers{})
	f.offer = &offer{client: f.client, counts: f.counts, known: resourcelisters.NewResourceSliceLister(informer.GetIndexer())}
	if err := watch(ctx, informer, f.offer.handler(ctx, f)); err != nil {
		return fmt.Errorf("watch resource slices: %w", err)
	}
	return nil
}

// publish brings the ResourceSlices of a node to what they should be.
func (o *offer) publish(ctx context.Context, node *corev1.Node) {
	for _, want := range o.counts.Slices(node) {
		if err := o.ensure(ctx, want); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Publish the devices of a node", "node", node.Name)
		}
	}
}

func (o *offer) ensure(ctx context.Context, want *resourcev1.ResourceSlice) error {
	have, err := o.known.Get(want.Name)
	if apierrors.IsNotFound(err) {
		_, err = o.client.ResourceV1().ResourceSlices().Create(ctx, want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache is late; the next beat sees it
		}
		return err
	}
	if err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(have.Spec, want.Spec) && apiequality.Semantic.DeepEqual(have.OwnerReferences, want.OwnerReferences) {
		return nil
	}
	mended := have.DeepCopy()
	mended.Spec, mended.OwnerReferences = want.Spec, want.OwnerReferences
	mended.Spec.Pool.Generation = have.Spec.Pool.Generation + 1
	_, err = o.client.ResourceV1().ResourceSlices().Update(ctx, mended, metav1.UpdateOptions{})
	return err
}

// handler publishes anew what is deleted.
func (o *offer) handler(ctx context.Context, f *fleet) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		slice, ok := object.(*resourcev1.ResourceSlice)
		if !ok || slice.Spec.NodeName == nil {
			return
		}
		if node := f.node(*slice.Spec.NodeName); node != nil {
			o.publish(ctx, node)
		}
	}}
}

// claims is what pods get their devices from.
type claims struct{ client kubernetes.Interface }

func (c claims) Claim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := c.client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	return claim, inSingular(err, "resourceclaim", name)
}

// Prepared says in the claim's status that the node has made its devices ready,
// as drivers do.
func (c claims) Prepared(ctx context.Context, claim *resourcev1.ResourceClaim, devices []device.Device) error {
	if len(claim.Status.Devices) >= len(devices) {
		return nil // by another pod that shares the claim, or before the agent started
	}
	status := resourceapply.ResourceClaimStatus()
	for _, d := range devices {
		status = status.WithDevices(resourceapply.AllocatedDeviceStatus().WithDriver(d.Driver).WithPool(d.Pool).WithDevice(d.Name).
			WithConditions(metaapply.Condition().WithType("Ready").WithStatus(metav1.ConditionTrue).
				WithReason("Prepared").WithMessage("the node has prepared the device").WithLastTransitionTime(metav1.Now())))
	}
	apply := resourceapply.ResourceClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithStatus(status)
	if _, err := c.client.ResourceV1().ResourceClaims(claim.Namespace).ApplyStatus(ctx, apply, metav1.ApplyOptions{FieldManager: "localcluster-node", Force: true}); err != nil {
		return fmt.Errorf("report the devices of resource claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
