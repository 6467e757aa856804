package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/validationcases"
)

var mux = (&Server{Scope: validation.Scope{ClusterWide: true}, Operator: "system:serviceaccount:dynamo-system:operator"}).Mux()

// ask sends a request the way the API server does.
func ask(t testing.TB, kind string, request admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	request.UID = "u"
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request,
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return post(t, Kind{Name: kind}.Path(), body)
}

// post sends a body to a path as an API server does.
func post(t testing.TB, path string, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	call := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	call.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, call)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("answer %d %s: %v", recorder.Code, recorder.Body, err)
	}
	return answer.Response
}

func TestCasebook(t *testing.T) {
	valid, err := validationcases.Valid()
	if err != nil {
		t.Fatal(err)
	}
	invalid, err := validationcases.Invalid()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range slices.Concat(valid, invalid) {
		if c.BySchema {
			continue // the API server does not ask
		}
		t.Run(c.Rule, func(t *testing.T) {
			object, err := c.Object("lab", fmt.Sprintf("case-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			schema, _, err := crdschema.Of(object.GetKind())
			if err != nil {
				t.Fatal(err)
			}
			schema.Default(object.Object)
			raw, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			response := ask(t, object.GetKind(), admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}})
			if len(c.Refused) == 0 != response.Allowed {
				t.Fatalf("allowed %v: %v", response.Allowed, response.Result)
			}
			for _, path := range c.Refused {
				if !strings.Contains(response.Result.Message, path) || !slices.ContainsFunc(response.Result.Details.Causes, func(s metav1.StatusCause) bool { return s.Field == path }) {
					t.Errorf("%s is not named: %s", path, response.Result.Message)
				}
			}
		})
	}
}

func TestHandle(t *testing.T) {
	const old = `{"metadata":{"name":"g"},"spec":{"services":{"my_svc":{"replicas":-1}}}}`
	raw := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	cases := map[string]struct {
		request admissionv1.AdmissionRequest
		code    int32 // 0 means allowed
		warned  bool
	}{
		"deletion is not judged":                        {admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: raw(old)}, 0, false},
		"what cannot be read is a bad request":          {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(`{"spec":1}`)}, 400, false},
		"what breaks a rule is forbidden":               {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(old)}, 403, false},
		"a finalizer can be removed from a bad object":  {admissionv1.AdmissionRequest{Operation: admissionv1.Update, OldObject: raw(strings.Replace(old, `"name":"g"`, `"name":"g","finalizers":["x"]`, 1)), Object: raw(old)}, 0, false},
		"a bad object can be labelled":                  {admissionv1.AdmissionRequest{Operation: admissionv1.Update, OldObject: raw(old), Object: raw(strings.Replace(old, `"name":"g"`, `"name":"g","labels":{"a":"b"}`, 1))}, 0, false},
		"a bad object can go":                           {admissionv1.AdmissionRequest{Operation: admissionv1.Update, OldObject: raw(old), Object: raw(`{"metadata":{"name":"g","deletionTimestamp":"2030-01-01T00:00:00Z"},"spec":{"services":{}}}`)}, 0, false},
		"a stored object that cannot be read is mended": {admissionv1.AdmissionRequest{Operation: admissionv1.Update, OldObject: raw(`{"spec":1}`), Object: raw(`{"spec":{"services":{"a":{}}}}`)}, 0, false},
		"users are warned":                              {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(`{"spec":{"services":{"a":{"autoscaling":{}}}}}`)}, 0, true},
		"the operator is not": {admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Object: raw(`{"spec":{"services":{"a":{"autoscaling":{}}}}}`),
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:dynamo-system:operator"},
		}, 0, false},
		"an account that is called like the operator has no more rights": {admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Object: raw(old),
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:evil:dynamo-operator-controller-manager"},
		}, 403, false},
		"nor has the operator itself": {admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Object: raw(old),
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:dynamo-system:operator"},
		}, 403, false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			response := ask(t, "DynamoGraphDeployment", c.request)
			if response.Allowed != (c.code == 0) || c.code != 0 && response.Result.Code != c.code {
				t.Errorf("allowed %v, %v", response.Allowed, response.Result)
			}
			if warned := len(response.Warnings) > 0; warned != c.warned {
				t.Errorf("warnings %q", response.Warnings)
			}
		})
	}
}

func TestTooLargeARequestIsRefused(t *testing.T) {
	body := strings.NewReader(`{"kind":"` + strings.Repeat("x", 8<<20))
	call := httptest.NewRequest(http.MethodPost, Kinds[0].Path(), body)
	call.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, call)
	if !strings.Contains(recorder.Body.String(), "too large") {
		t.Errorf("answer %d %.200s", recorder.Code, recorder.Body)
	}
}
