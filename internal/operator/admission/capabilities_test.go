package admission

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// TestANewGraphIsWarnedOfWhatGroveDoesNotKnow where the cluster serves Grove, and
// nothing is refused where nobody knows what it serves.
func TestANewGraphIsWarnedOfWhatGroveDoesNotKnow(t *testing.T) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Name, dgd.Namespace = "chat", "lab"
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {Annotations: map[string]string{v1alpha1.AnnotationMaxSurge: "1"}}}
	raw, err := json.Marshal(dgd)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == v1alpha1.KindDynamoGraphDeployment })
	for rule, c := range map[string]struct {
		have Capabilities
		want bool
	}{
		"with Grove": {func(context.Context) (snapshot.Capabilities, error) {
			return snapshot.Capabilities{snapshot.APIGrove: true}, nil
		}, true},
		"without Grove":    {func(context.Context) (snapshot.Capabilities, error) { return snapshot.Capabilities{}, nil }, false},
		"nobody can tell":  {func(context.Context) (snapshot.Capabilities, error) { return nil, errors.New("not synced") }, false},
		"nobody was asked": {nil, false},
	} {
		t.Run(rule, func(t *testing.T) {
			response := Handler{Kind: Kinds[at], Capabilities: c.have}.Handle(t.Context(), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
			}})
			warned := slices.ContainsFunc(response.Warnings, func(w string) bool { return strings.Contains(w, "provider grove") })
			if !response.Allowed || warned != c.want {
				t.Errorf("allowed %v, warnings %q", response.Allowed, response.Warnings)
			}
		})
	}
}
