package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestDevicesAreServed(t *testing.T) {
	resources := func(version string, names ...string) []*metav1.APIResourceList {
		list := &metav1.APIResourceList{GroupVersion: version}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Namespaced: true})
		}
		return []*metav1.APIResourceList{list}
	}
	for rule, c := range map[string]struct {
		lists []*metav1.APIResourceList
		want  bool
	}{
		"in the version that we write":    {resources("resource.k8s.io/v1", "resourceclaims", "resourceclaimtemplates"), true},
		"not in an earlier version alone": {resources("resource.k8s.io/v1beta1", "resourceclaims", "resourceclaimtemplates"), false},
		"not where the kind is missing":   {resources("resource.k8s.io/v1", "deviceclasses"), false},
		"not where the group is missing":  {resources("apps/v1", "deployments"), false},
	} {
		t.Run(rule, func(t *testing.T) {
			got, err := ServesDevices(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: c.lists}})
			if err != nil || got != c.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
