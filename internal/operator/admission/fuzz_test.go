package admission

import (
	"encoding/json"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/validationcases"
)

// Each path is fuzzed by itself: a create, and an update from another object.
// Whatever comes, there is an answer, and it is no crash.

func FuzzGraphDeployment(f *testing.F)     { fuzz(f, v1alpha1.KindDynamoGraphDeployment) }
func FuzzComponentDeployment(f *testing.F) { fuzz(f, v1alpha1.KindDynamoComponentDeployment) }
func FuzzModel(f *testing.F)               { fuzz(f, v1alpha1.KindDynamoModel) }
func FuzzRequest(f *testing.F)             { fuzz(f, v1alpha1.KindDynamoGraphDeploymentRequest) }
func FuzzScalingAdapter(f *testing.F)      { fuzz(f, v1alpha1.KindDynamoGraphDeploymentScalingAdapter) }

func fuzz(f *testing.F, kind string) {
	valid, err := validationcases.Valid()
	if err != nil {
		f.Fatal(err)
	}
	invalid, err := validationcases.Invalid()
	if err != nil {
		f.Fatal(err)
	}
	previous := []byte("{}")
	for _, c := range append(valid, invalid...) {
		object, err := c.Object("lab", "seed")
		if err != nil {
			f.Fatal(err)
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		if object.GetKind() == kind && len(raw) < 4096 {
			f.Add(previous, raw)
			previous = raw
		}
	}
	f.Fuzz(func(t *testing.T, old, object []byte) {
		if !json.Valid(old) || !json.Valid(object) {
			return // the API server sends objects that it could read
		}
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			response := ask(t, kind, admissionv1.AdmissionRequest{
				Operation: operation, Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
			})
			switch {
			case response.Allowed:
			case response.Result == nil || response.Result.Code == http.StatusInternalServerError:
				t.Errorf("%s: %v", operation, response.Result)
			case response.Result.Code == http.StatusForbidden && len(response.Result.Details.Causes) == 0:
				t.Errorf("%s: refused for nothing", operation)
			}
		}
	})
}

// FuzzBody sends whatever may be sent, to each path: what is no review is refused
// as such, and a review of anything is answered.
func FuzzBody(f *testing.F) {
	for path := range Kinds {
		for _, body := range []string{
			``, `{}`, `null`, `[]`, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`,
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":{"spec":{"services":{"a":null}}}}}`,
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"UPDATE","object":null,"oldObject":{"spec":[]}}}`,
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","operation":"DELETE","oldObject":{}}}`,
		} {
			f.Add(uint8(path), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		answer := post(t, Kinds[int(path)%len(Kinds)].Path(), body)
		if r := answer.Result; r != nil && r.Code >= http.StatusInternalServerError {
			t.Errorf("answer %v", r)
		}
	})
}
