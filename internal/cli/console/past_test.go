package console

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestWhatChangedIsRememberedOnce(t *testing.T) {
	p, begin := newPast(), time.Now()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Namespace, dgd.Name = "lab", "chat"
	key := types.NamespacedName{Namespace: "lab", Name: "chat"}
	for i, ready := range []int32{1, 1, 2, 2, 1} {
		dgd.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"decode": {Replicas: 2, ReadyReplicas: &ready}}
		p.note(dgd, nil, begin.Add(time.Duration(i)*time.Second))
	}
	var got []int
	for _, m := range p.of(key) {
		got = append(got, m.Services["decode"].Ready)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 1 {
		t.Errorf("remembered %v", got)
	}
	for i := range 2 * remembered {
		ready := int32(i)
		dgd.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"decode": {ReadyReplicas: &ready}}
		p.note(dgd, nil, begin.Add(time.Duration(10+i)*time.Second))
	}
	if n := len(p.of(key)); n != remembered {
		t.Errorf("%d moments are kept", n)
	}
	p.forget(key)
	if p.of(key) != nil {
		t.Error("a graph that is gone is remembered")
	}
}
