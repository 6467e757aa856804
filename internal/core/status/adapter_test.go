package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAdapter(t *testing.T) {
	graphOf := func(enabled bool) *v1alpha1.DynamoGraphDeployment {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat", UID: "u"}}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
			"decode": {ScalingAdapter: &v1alpha1.ScalingAdapter{Enabled: enabled}}, "nil": nil,
		}
		dgd.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"decode": {Replicas: 3}}
		return dgd
	}
	cases := map[string]struct {
		service  string
		graph    *v1alpha1.DynamoGraphDeployment
		owned    bool
		reason   string
		replicas int32
	}{
		"it decides about a service that enables it":         {"decode", graphOf(true), true, v1alpha1.ReasonScalingActive, 3},
		"a graph that is gone is told":                       {"decode", nil, true, v1alpha1.ReasonGraphNotFound, 0},
		"a service that is gone is told":                     {"other", graphOf(true), true, v1alpha1.ReasonServiceNotFound, 0},
		"a service that does not enable it is told":          {"decode", graphOf(false), true, v1alpha1.ReasonAdapterDisabled, 3},
		"a null service does not enable it":                  {"nil", graphOf(true), true, v1alpha1.ReasonAdapterDisabled, 0},
		"an adapter that somebody else made decides nothing": {"decode", graphOf(true), false, v1alpha1.ReasonAdapterNotOwned, 3},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			a := &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
			a.Spec.DGDRef = v1alpha1.GraphServiceRef{Name: "chat", ServiceName: c.service}
			if c.owned {
				a.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: new(true)}}
			}
			s := Adapter(a, c.graph, now)
			if got := s.Conditions[0].Reason; got != c.reason {
				t.Errorf("reason %s, want %s", got, c.reason)
			}
			if s.Replicas != c.replicas {
				t.Errorf("replicas %d, want those that were seen: %d", s.Replicas, c.replicas)
			}
			if want := "nvidia.com/dynamo-graph-deployment-name=chat,nvidia.com/dynamo-component=" + c.service; s.Selector != want {
				t.Errorf("selector %s, want %s", s.Selector, want)
			}
		})
	}
}
