package observe

import (
	"errors"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// ServesDevices asks the API server whether pods can claim devices there.
func ServesDevices(server discovery.ServerResourcesInterface) (bool, error) {
	version := resourcev1.SchemeGroupVersion
	list, err := server.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", snapshot.APIDevices, err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return snapshot.API(r.Name+"."+version.Version+"."+version.Group) == snapshot.APIDevices
	}), nil
}

// Served asks the API server which optional APIs it serves. That of queues is
// left out: who may only read in namespaces cannot use it.
func Served(server discovery.ServerResourcesInterface) (snapshot.Capabilities, error) {
	_, lists, err := server.ServerGroupsAndResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return nil, err
	}
	have := snapshot.Capabilities{}
	for _, api := range snapshot.APIs {
		have[api] = false
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			api := snapshot.API(r.Name + "." + group.Group)
			if _, known := have[api]; known && r.Namespaced {
				have[api] = true
			}
		}
	}
	return have, nil
}
