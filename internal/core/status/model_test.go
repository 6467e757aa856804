package status

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

func TestModel(t *testing.T) {
	at := func(pod string, loaded bool, problem string) loraplan.Place {
		return loraplan.Place{Endpoint: loraplan.Endpoint{Address: netip.MustParseAddr("10.0.0.1"), Pod: pod, Ready: true}, Loaded: loaded, Problem: problem}
	}
	seen := func(pod string, ready bool, problem string) v1alpha1.ModelEndpoint {
		return v1alpha1.ModelEndpoint{Address: "http://10.0.0.1:9090", PodName: pod, Ready: ready, Error: problem}
	}
	found := loraplan.World{Services: []string{"dynamo-model-1"}}
	type verdicts map[string]string
	cases := map[string]struct {
		kind      v1alpha1.ModelType
		deleted   bool
		world     loraplan.World
		plan      loraplan.Plan
		err       error
		ready     int32
		endpoints []v1alpha1.ModelEndpoint
		want      verdicts
	}{
		"nobody serves the base": {
			kind: v1alpha1.ModelTypeLoRA,
			want: verdicts{"Valid": "True ValidationPassed", "ServicesFound": "False NoServicesFound", "EndpointsReady": "False NoEndpoints: no ready pod serves org/base"},
		},
		"a base model is ready where it is served": {
			kind: v1alpha1.ModelTypeBase, world: found, plan: loraplan.Plan{Places: []loraplan.Place{at("a", false, "")}},
			ready: 1, endpoints: []v1alpha1.ModelEndpoint{seen("a", true, "")},
			want: verdicts{"Valid": "True ValidationPassed", "ServicesFound": "True ServicesFound", "EndpointsReady": "True EndpointsDiscovered: org/base served by 1 endpoints"},
		},
		"an adapter acts as a base": {
			kind: v1alpha1.ModelTypeAdapter, world: found, plan: loraplan.Plan{Places: []loraplan.Place{at("a", false, "")}},
			ready: 1, endpoints: []v1alpha1.ModelEndpoint{seen("a", true, "")},
			want: verdicts{"Valid": "True ValidationPassed", "ServicesFound": "True ServicesFound", "EndpointsReady": "True EndpointsDiscovered: org/base served by 1 endpoints"},
		},
		"a lora is ready where it is loaded": {
			kind: v1alpha1.ModelTypeLoRA, world: found, plan: loraplan.Plan{Places: []loraplan.Place{at("a", true, ""), at("b", true, "")}},
			ready: 2, endpoints: []v1alpha1.ModelEndpoint{seen("a", true, ""), seen("b", true, "")},
			want: verdicts{"Valid": "True ValidationPassed", "ServicesFound": "True ServicesFound", "EndpointsReady": "True AllEndpointsReady: org/lora loaded on 2 of 2 endpoints"},
		},
		"the condition names some problems, the list all": {
			kind: v1alpha1.ModelTypeLoRA, world: found,
			plan:  loraplan.Plan{Places: []loraplan.Place{at("a", true, ""), at("b", false, "p"), at("c", false, "q"), at("d", false, "r"), at("e", false, "s")}},
			ready: 1, endpoints: []v1alpha1.ModelEndpoint{seen("a", true, ""), seen("b", false, "p"), seen("c", false, "q"), seen("d", false, "r"), seen("e", false, "s")},
			want: verdicts{"Valid": "True ValidationPassed", "ServicesFound": "True ServicesFound", "EndpointsReady": "False NotReady: org/lora loaded on 1 of 5 endpoints; b: p; c: q; d: r; and 1 more"},
		},
		"a deletion tells whom it waits for": {
			kind: v1alpha1.ModelTypeLoRA, deleted: true, world: found,
			plan:      loraplan.Plan{Places: []loraplan.Place{at("a", false, "p"), at("b", false, "")}, Pending: []loraplan.Place{at("a", false, "p")}},
			endpoints: []v1alpha1.ModelEndpoint{seen("a", false, "p"), seen("b", false, "")},
			want:      verdicts{"Valid": "True ValidationPassed", "ServicesFound": "True ServicesFound", "EndpointsReady": "False Unloading: 1 endpoints have yet to unload; a: p"},
		},
		"a rival stands in the condition": {
			kind: v1alpha1.ModelTypeLoRA, world: found, plan: loraplan.Plan{Places: []loraplan.Place{at("a", false, "")}},
			err:       fault.New(fault.Waiting, v1alpha1.ReasonNameConflict, "rival"),
			endpoints: []v1alpha1.ModelEndpoint{seen("a", false, "")},
			want:      verdicts{"Valid": "True ValidationPassed", "ServicesFound": "True ServicesFound", "EndpointsReady": "False NameConflict: rival"},
		},
		"of an invalid spec nothing else is said": {
			kind: v1alpha1.ModelTypeLoRA, err: fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, "no source"),
			want: verdicts{"Valid": "False ValidationFailed"},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dm := &v1alpha1.DynamoModel{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Generation: 3},
				Spec:       v1alpha1.DynamoModelSpec{ModelName: "org/lora", BaseModelName: "org/base", ModelType: c.kind},
			}
			if c.deleted {
				dm.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			s := Model(dm, c.world, c.plan, c.err, metav1.Unix(1, 0))
			got := verdicts{}
			for _, condition := range s.Conditions {
				got[condition.Type] = string(condition.Status) + " " + condition.Reason
				if condition.Type == v1alpha1.ConditionEndpointsReady {
					got[condition.Type] += ": " + condition.Message
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.endpoints, s.Endpoints); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			if s.ObservedGeneration != 3 || s.ReadyEndpoints != c.ready || int(s.TotalEndpoints) != len(c.endpoints) {
				t.Errorf("generation %d, %d of %d", s.ObservedGeneration, s.ReadyEndpoints, s.TotalEndpoints)
			}
		})
	}
}
