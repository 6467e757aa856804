package proxy

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Index names.
const (
	byClusterIP = "clusterIP"
	byService   = "service"
)

var serviceIndexers = cache.Indexers{
	byClusterIP: func(object any) ([]string, error) {
		service, ok := object.(*corev1.Service)
		if !ok || service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
			return nil, nil
		}
		return []string{service.Spec.ClusterIP}, nil
	},
}

var sliceIndexers = cache.Indexers{
	byService: func(object any) ([]string, error) {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok || slice.Labels[discoveryv1.LabelServiceName] == "" {
			return nil, nil
		}
		return []string{slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]}, nil
	},
}

// watch returns the caches of Services and EndpointSlices, filled. Pods need no watching: their addresses translate by
// arithmetic, and their DNS names are in the slices.
func watch(ctx context.Context, client kubernetes.Interface) (services, slices cache.Indexer, err error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim))
	serviceInformer := factory.Core().V1().Services().Informer()
	sliceInformer := factory.Discovery().V1().EndpointSlices().Informer()
	if err := serviceInformer.AddIndexers(serviceIndexers); err != nil {
		return nil, nil, fmt.Errorf("index services: %w", err)
	}
	if err := sliceInformer.AddIndexers(sliceIndexers); err != nil {
		return nil, nil, fmt.Errorf("index endpoint slices: %w", err)
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, nil, fmt.Errorf("watch %s: %w", kind, context.Cause(ctx))
		}
	}
	return serviceInformer.GetIndexer(), sliceInformer.GetIndexer(), nil
}

// trim keeps of an object what resolution reads; a cluster with many pods has many endpoints.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Service:
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			Spec:       corev1.ServiceSpec{Type: o.Spec.Type, ClusterIP: o.Spec.ClusterIP, Ports: o.Spec.Ports},
		}, nil
	case *discoveryv1.EndpointSlice:
		slim := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
				Labels: map[string]string{discoveryv1.LabelServiceName: o.Labels[discoveryv1.LabelServiceName]},
			},
			Ports: o.Ports,
		}
		for _, endpoint := range o.Endpoints {
			slim.Endpoints = append(slim.Endpoints, discoveryv1.Endpoint{
				Addresses: endpoint.Addresses, Conditions: endpoint.Conditions, Hostname: endpoint.Hostname,
			})
		}
		return slim, nil
	}
	return object, nil
}
