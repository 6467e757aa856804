package status

import (
	"fmt"
	"net"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// systemPort is where engines are asked about adapters.
const systemPort = "9090"

// maxModelProblems is how many endpoints with a problem a condition names; the list of
// endpoints names them all.
const maxModelProblems = 3

// Model computes the status of a DynamoModel. A spec that breaks a rule leaves
// the rest as it was last seen.
func Model(dm *v1alpha1.DynamoModel, w loraplan.World, p loraplan.Plan, err error, now metav1.Time) v1alpha1.DynamoModelStatus {
	s := *dm.Status.DeepCopy()
	s.ObservedGeneration = dm.Generation
	report := func(kind string, v condition) { setCondition(&s.Conditions, kind, v, dm.Generation, now) }
	if f, known := fault.From(err); known && f.Class == fault.Invalid {
		report(v1alpha1.ConditionValid, failure(err))
		return s
	}
	report(v1alpha1.ConditionValid, condition{true, v1alpha1.ReasonValidationPassed, "the spec obeys every rule"})
	lora := dm.Spec.ModelType == v1alpha1.ModelTypeLoRA
	s.Endpoints, s.ReadyEndpoints, s.TotalEndpoints = nil, 0, int32(len(p.Places))
	for _, place := range p.Places {
		ready := place.Loaded || !lora
		if ready {
			s.ReadyEndpoints++
		}
		s.Endpoints = append(s.Endpoints, v1alpha1.ModelEndpoint{
			Address: "http://" + net.JoinHostPort(place.Endpoint.Address.String(), systemPort),
			PodName: place.Endpoint.Pod, Ready: ready, Error: sanitise.Text(place.Problem),
		})
	}
	report(v1alpha1.ConditionServicesFound, servicesFound(dm, w))
	switch {
	case err != nil:
		report(v1alpha1.ConditionEndpointsReady, failure(err))
	case dm.DeletionTimestamp != nil:
		report(v1alpha1.ConditionEndpointsReady, unloading(p))
	default:
		report(v1alpha1.ConditionEndpointsReady, endpointsReady(dm, p, s))
	}
	return s
}

func servicesFound(dm *v1alpha1.DynamoModel, w loraplan.World) condition {
	if len(w.Services) == 0 {
		return condition{false, v1alpha1.ReasonNoServicesFound,
			fmt.Sprintf("no Service of namespace %s serves %s: a graph's service does with modelRef.name", dm.Namespace, dm.Spec.BaseModelName)}
	}
	return condition{true, v1alpha1.ReasonServicesFound, strings.Join(w.Services, ", ")}
}

func endpointsReady(dm *v1alpha1.DynamoModel, p loraplan.Plan, s v1alpha1.DynamoModelStatus) condition {
	switch {
	case s.TotalEndpoints == 0:
		return condition{false, v1alpha1.ReasonNoEndpoints, fmt.Sprintf("no ready pod serves %s", dm.Spec.BaseModelName)}
	case dm.Spec.ModelType != v1alpha1.ModelTypeLoRA:
		return condition{true, v1alpha1.ReasonEndpointsDiscovered, fmt.Sprintf("%s served by %d endpoints", dm.Spec.BaseModelName, s.TotalEndpoints)}
	}
	loaded := fmt.Sprintf("%s loaded on %d of %d endpoints", dm.Spec.ModelName, s.ReadyEndpoints, s.TotalEndpoints)
	return condition{
		s.ReadyEndpoints == s.TotalEndpoints,
		map[bool]string{true: v1alpha1.ReasonAllEndpointsReady, false: v1alpha1.ReasonEndpointsNotReady}[s.ReadyEndpoints == s.TotalEndpoints],
		loaded + problems(p.Places),
	}
}

func unloading(p loraplan.Plan) condition {
	return condition{false, v1alpha1.ReasonUnloading, fmt.Sprintf("%d endpoints have yet to unload", len(p.Pending)) + problems(p.Pending)}
}

// problems names the first of the endpoints that have one.
func problems(places []loraplan.Place) string {
	var text strings.Builder
	count := 0
	for _, place := range places {
		if place.Problem == "" {
			continue
		}
		count++
		if count <= maxModelProblems {
			fmt.Fprintf(&text, "; %s: %s", place.Endpoint.Pod, place.Problem)
		}
	}
	if count > maxModelProblems {
		fmt.Fprintf(&text, "; and %d more", count-maxModelProblems)
	}
	return text.String()
}
