package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnObjectIsReadyInItsCurrentGeneration(t *testing.T) {
	yes := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
	}
	for rule, c := range map[string]struct {
		observed   int64
		conditions bool
		want       bool
	}{
		"told and true":               {2, true, true},
		"true of an older generation": {1, true, false},
		"not told":                    {2, false, false},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd, dcd, dm := &DynamoGraphDeployment{}, &DynamoComponentDeployment{}, &DynamoModel{}
			dgd.Generation, dcd.Generation, dm.Generation = 2, 2, 2
			dgd.Status.ObservedGeneration, dcd.Status.ObservedGeneration, dm.Status.ObservedGeneration = c.observed, c.observed, c.observed
			if c.conditions {
				dgd.Status.Conditions, dcd.Status.Conditions, dm.Status.Conditions = yes(ConditionReady), yes(ConditionAvailable), yes(ConditionEndpointsReady)
			}
			if dgd.IsReady() != c.want || dcd.IsReady() != c.want || dm.IsReady() != c.want || (dm.GetState() == "Ready") != c.want {
				t.Errorf("graph %v, component %v, model %v (%s)", dgd.IsReady(), dcd.IsReady(), dm.IsReady(), dm.GetState())
			}
		})
	}
}

func TestWhatAGraphConsistsOf(t *testing.T) {
	dgd := &DynamoGraphDeployment{Spec: DynamoGraphDeploymentSpec{Services: map[string]*SharedSpec{"none": nil, "one": {Multinode: &Multinode{NodeCount: 1}}}}}
	if dgd.HasAnyMultinodeService() || dgd.HasEPPService() {
		t.Error("a service on one node spans none, and picks none")
	}
	dgd.Spec.Services["two"] = &SharedSpec{Multinode: &Multinode{NodeCount: 2}}
	dgd.Spec.Services["epp"] = &SharedSpec{ComponentType: ComponentTypeEPP}
	if !dgd.HasAnyMultinodeService() || !dgd.HasEPPService() {
		t.Error("a service on two nodes and a picker are not seen")
	}
	if n := dgd.Spec.Services["epp"].GetNumberOfNodes(); n != 1 {
		t.Errorf("a service without multinode is on %d nodes", n)
	}
}

func TestConditionsReplaceThoseOfTheirType(t *testing.T) {
	dgd := &DynamoGraphDeployment{}
	dgd.AddStatusCondition(metav1.Condition{Type: "A", Status: metav1.ConditionFalse})
	dgd.AddStatusCondition(metav1.Condition{Type: "A", Status: metav1.ConditionTrue})
	if len(dgd.Status.Conditions) != 1 || dgd.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("conditions %v", dgd.Status.Conditions)
	}
	dgd.SetState("pending")
	if dgd.GetState() != string(GraphStatePending) {
		t.Errorf("state %s", dgd.GetState())
	}
}
