package admission

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// review asks the server's own mux, as the API server would.
func review(t *testing.T, body string) (int, apiextensionsv1.ConversionReview) {
	t.Helper()
	recorder := httptest.NewRecorder()
	server := &Server{Scope: validation.Scope{}}
	server.Mux().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, ConvertPath, strings.NewReader(body)))
	var answered apiextensionsv1.ConversionReview
	if recorder.Code == http.StatusOK {
		if err := json.Unmarshal(recorder.Body.Bytes(), &answered); err != nil {
			t.Fatal(err)
		}
	}
	return recorder.Code, answered
}

const graphObject = `{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoGraphDeployment","metadata":{"name":"g","namespace":"n","uid":"u","managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},"spec":{"services":{"w":{"componentType":"worker"}}}}`

func TestConverterAnswersForAList(t *testing.T) {
	body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"r","desiredAPIVersion":"nvidia.com/v1beta1","objects":[` + graphObject + `,` + strings.Replace(graphObject, `"g"`, `"h"`, 1) + `]}}`
	code, answered := review(t, body)
	response := answered.Response
	if code != http.StatusOK || response == nil || response.UID != "r" || response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != 2 {
		t.Fatalf("%d: %+v", code, response)
	}
	if answered.Kind != "ConversionReview" || answered.Request != nil {
		t.Errorf("the review is %+v", answered)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(response.ConvertedObjects[1].Raw, object); err != nil {
		t.Fatal(err)
	}
	components, _, err := unstructured.NestedSlice(object.Object, "spec", "components")
	if err != nil || len(components) != 1 || object.GetAPIVersion() != "nvidia.com/v1beta1" || object.GetName() != "h" || object.GetUID() != "u" || len(object.GetManagedFields()) != 1 {
		t.Errorf("%v, %v", object, err)
	}
}

func TestConverterSaysWhichObjectItCannotConvert(t *testing.T) {
	cases := map[string]struct{ object, problem string }{
		"a kind of one version":    {`{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoModel","metadata":{"name":"m","namespace":"n"}}`, "DynamoModel n/m"},
		"a field of another type":  {strings.Replace(graphObject, `{"componentType":"worker"}`, `3`, 1), "DynamoGraphDeployment n/g"},
		"an unknown apiVersion":    {strings.Replace(graphObject, "v1alpha1", "v1", 1), "nvidia.com/v1"},
		"an object that is no map": {`[]`, "cannot be read"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			code, answered := review(t, `{"request":{"uid":"r","desiredAPIVersion":"nvidia.com/v1beta1","objects":[`+c.object+`]}}`)
			if code != http.StatusOK || answered.Response.Result.Status != metav1.StatusFailure || !strings.Contains(answered.Response.Result.Message, c.problem) || len(answered.Response.ConvertedObjects) != 0 {
				t.Errorf("%d: %+v", code, answered.Response)
			}
		})
	}
}

func TestConverterAnswersForNone(t *testing.T) {
	code, answered := review(t, `{"request":{"uid":"\"convertedObjects\":[]","desiredAPIVersion":"nvidia.com/v1beta1","objects":[]}}`)
	if code != http.StatusOK || answered.Response.Result.Status != metav1.StatusSuccess || len(answered.Response.ConvertedObjects) != 0 || answered.Response.UID != `"convertedObjects":[]` {
		t.Errorf("%d: %+v", code, answered.Response)
	}
}

func TestConverterRefusesWhatIsNoReview(t *testing.T) {
	for rule, body := range map[string]string{"no JSON": "hello", "no request": "{}"} {
		t.Run(rule, func(t *testing.T) {
			if code, _ := review(t, body); code != http.StatusBadRequest {
				t.Errorf("code is %d", code)
			}
		})
	}
}
