package event

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestModelTurned(t *testing.T) {
	said := func(kind string, status metav1.ConditionStatus, reason string, problems ...string) v1alpha1.DynamoModelStatus {
		s := v1alpha1.DynamoModelStatus{Conditions: []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "m"}}}
		for _, p := range problems {
			s.Endpoints = append(s.Endpoints, v1alpha1.ModelEndpoint{Error: p})
		}
		return s
	}
	ready := v1alpha1.ConditionEndpointsReady
	cases := map[string]struct {
		was, is v1alpha1.DynamoModelStatus
		want    []string
	}{
		"nothing changed, nothing said": {said(ready, "True", v1alpha1.ReasonAllEndpointsReady), said(ready, "True", v1alpha1.ReasonAllEndpointsReady), nil},
		"loaded everywhere":             {said(ready, "False", v1alpha1.ReasonEndpointsNotReady), said(ready, "True", v1alpha1.ReasonAllEndpointsReady), []string{"Normal EndpointsReady m"}},
		"a base is served":              {v1alpha1.DynamoModelStatus{}, said(ready, "True", v1alpha1.ReasonEndpointsDiscovered), []string{"Normal EndpointsDiscovered m"}},
		"nobody is there":               {v1alpha1.DynamoModelStatus{}, said(ready, "False", v1alpha1.ReasonNoEndpoints), []string{"Warning NoEndpointsFound m"}},
		"loading is no news":            {v1alpha1.DynamoModelStatus{}, said(ready, "False", v1alpha1.ReasonEndpointsNotReady), nil},
		"a first failure is":            {said(ready, "False", v1alpha1.ReasonEndpointsNotReady, ""), said(ready, "False", v1alpha1.ReasonEndpointsNotReady, "p"), []string{"Warning PartialEndpointFailure m"}},
		"a second is not":               {said(ready, "False", v1alpha1.ReasonEndpointsNotReady, "p"), said(ready, "False", v1alpha1.ReasonEndpointsNotReady, "p", "q"), nil},
		"a spec that breaks a rule":     {v1alpha1.DynamoModelStatus{}, said(v1alpha1.ConditionValid, "False", v1alpha1.ReasonValidationFailed), []string{"Warning ValidationFailed m"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			recorder := events.NewFakeRecorder(5)
			ModelTurned(recorder, &v1alpha1.DynamoModel{}, c.was, c.is)
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
