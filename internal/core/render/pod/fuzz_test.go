package pod

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// FuzzOverlay lays any pod spec over any other and over our own containers: it
// never panics, changes neither, and a layer that says nothing changes nothing.
func FuzzOverlay(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`{"containers":[{"name":"a","env":[{"name":"A","value":"1"}]}]}`))
	f.Add([]byte(`{"volumes":[{"name":"v","emptyDir":{}}],"terminationGracePeriodSeconds":60}`), []byte(`{"volumes":[{"name":"v","configMap":{"name":"c"}}],"terminationGracePeriodSeconds":0}`))
	f.Add([]byte(`{"containers":[{"name":"main","ports":[{"containerPort":1}],"resources":{"limits":{"cpu":"1"}}}]}`), []byte(`{"containers":[{"name":"main","ports":[{"containerPort":1,"name":"x"}],"resources":{"limits":{"cpu":"2"}}}]}`))
	f.Add([]byte(`{"tolerations":[{"key":"a"}],"nodeSelector":{"a":"b"}}`), []byte(`{"tolerations":[],"nodeSelector":{"c":"d"},"affinity":{}}`))
	f.Fuzz(func(t *testing.T, oursText, usersText []byte) {
		var ours, users corev1.PodSpec
		if json.Unmarshal(oursText, &ours) != nil || json.Unmarshal(usersText, &users) != nil {
			return
		}
		oursBefore, usersBefore := ours.DeepCopy(), users.DeepCopy()
		merged := Overlay(ours, users)
		if diff := cmp.Diff(merged, Overlay(ours, users)); diff != "" {
			t.Errorf("two overlays differ:\n%s", diff)
		}
		if diff := cmp.Diff(ours, Overlay(ours, corev1.PodSpec{})); diff != "" {
			t.Errorf("an empty layer changed ours:\n%s", diff)
		}
		if diff := cmp.Diff(users, Overlay(corev1.PodSpec{}, users)); diff != "" {
			t.Errorf("a layer over nothing is another:\n%s", diff)
		}
		for _, role := range []graph.Role{graph.RoleFrontend, graph.RoleWorker, graph.RoleEPP, graph.RoleOther} {
			for i := range users.Containers {
				mainContainer(graph.Component{Role: role, Main: &users.Containers[i], Pod: &users}, Platform{})
			}
		}
		if diff := cmp.Diff(*oursBefore, ours); diff != "" {
			t.Errorf("our layer changed:\n%s", diff)
		}
		if diff := cmp.Diff(*usersBefore, users); diff != "" {
			t.Errorf("the user's layer changed:\n%s", diff)
		}
	})
}
