package observe

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

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
