// Package storage provisions volumes for the default StorageClass: a claim gets a folder below the cluster's directory.
// Binding is left to Kubernetes, and so are claims of any other class, which stay pending as in a real cluster.
package storage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Config says whom to serve and where folders go.
type Config struct {
	Kubeconfig string
	Volumes    string
}

// Run provisions and reclaims until the context ends.
func Run(ctx context.Context, c Config) error {
	rest, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	rest.ContentType = "application/vnd.kubernetes.protobuf"
	rest.QPS = -1 // many claims at once are normal; the API server defends itself
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()

	return (&provisioner{
		client:  client,
		volumes: c.Volumes,
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Provisioner}),
	}).run(ctx)
}

type provisioner struct {
	client  kubernetes.Interface
	volumes string
	events  record.EventRecorder
}

// item names one object to look at; claims have a namespace, volumes do not.
type item struct{ namespace, name string }

func (p *provisioner) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(p.client, 0, informers.WithTransform(trim))
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]())
	claims := factory.Core().V1().PersistentVolumeClaims()
	volumes := factory.Core().V1().PersistentVolumes()
	enqueue := func(object any) {
		if o, ok := object.(metav1.Object); ok {
			queue.Add(item{namespace: o.GetNamespace(), name: o.GetName()})
		}
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, changed any) { enqueue(changed) },
		}); err != nil {
			return fmt.Errorf("watch claims and volumes: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	look := func(next item) error {
		if next.namespace == "" {
			if volume, err := volumes.Lister().Get(next.name); err == nil {
				return p.reclaim(ctx, volume)
			}
		} else if claim, err := claims.Lister().PersistentVolumeClaims(next.namespace).Get(next.name); err == nil {
			return p.provision(ctx, claim)
		}
		return nil // gone
	}
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	for {
		next, shutdown := queue.Get()
		if shutdown {
			return nil
		}
		if err := look(next); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Storage request failed, will retry", "namespace", next.namespace, "name", next.name)
			queue.AddRateLimited(next)
		} else {
			queue.Forget(next)
		}
		queue.Done(next)
	}
}

// trim drops what is never read and is often larger than the rest.
func trim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// provision makes the volume of a claim that Kubernetes has assigned to us.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName != "" || claim.Annotations[provisionerAnnotation] != Provisioner {
		return nil
	}
	if claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		p.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", "volumes are folders, volumeMode Block is not possible")
		return nil
	}
	className := *claim.Spec.StorageClassName // set, or the annotation would not be
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, className, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get StorageClass %s: %w", className, err)
	}
	volume := volumeFor(claim, class, p.volumes)
	if err := os.MkdirAll(volume.Spec.HostPath.Path, 0o700); err != nil {
		return fmt.Errorf("create volume: %w", err)
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("create PersistentVolume %s: %w", volume.Name, err)
	}
	p.events.Eventf(claim, corev1.EventTypeNormal, "ProvisioningSucceeded", "Provisioned volume %s", volume.Name)
	return nil
}

// reclaim deletes a volume of ours that its claim has left behind, unless it is to be retained.
func (p *provisioner) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[provisionedByAnnotation] != Provisioner ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
		volume.DeletionTimestamp != nil {
		return nil
	}
	// From the name and not from the spec, which users can write.
	if err := os.RemoveAll(filepath.Join(p.volumes, volume.Name)); err != nil {
		return fmt.Errorf("remove folder of volume %s: %w", volume.Name, err)
	}
	err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &volume.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}
