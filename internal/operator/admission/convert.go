package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	goruntime "runtime"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// ConvertPath is where the API server asks for objects in another version.
const ConvertPath = "/convert"

// conversionLimit bounds a request: the API server sends the objects of a list
// in one.
const conversionLimit = 128 << 20

// Converter turns objects into another version for the API server. It needs
// nothing but the request, so every replica answers, leader or not. Package
// apiversion leads API servers to it.
type Converter struct{}

// ServeHTTP answers one ConversionReview.
func (Converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, conversionLimit)).Decode(&review); err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, fmt.Sprintf("decode ConversionReview: %v", err), status)
		return
	}
	if review.Request == nil {
		http.Error(w, "ConversionReview has no request", http.StatusBadRequest)
		return
	}
	review.Response = answer(review.Request)
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := write(w, review); err != nil {
		log.FromContext(r.Context()).Error(err, "cannot write the ConversionReview response")
	}
}

// noObjects is how a response without objects is encoded. No string in JSON has its
// quotes.
var noObjects = []byte(`"convertedObjects":[]`)

// write encodes a review. Its objects were encoded a moment ago, and encoding/json
// would read every one of them again.
func write(w io.Writer, review apiextensionsv1.ConversionReview) error {
	objects := review.Response.ConvertedObjects
	review.Response.ConvertedObjects = []runtime.RawExtension{}
	text, err := json.Marshal(review)
	if err != nil {
		return err
	}
	at := bytes.Index(text, noObjects) + len(noObjects) - 1
	pieces := net.Buffers{text[:at]}
	for i, object := range objects {
		if i > 0 {
			pieces = append(pieces, []byte(","))
		}
		pieces = append(pieces, object.Raw)
	}
	pieces = append(pieces, text[at:])
	_, err = pieces.WriteTo(w)
	return err
}

// answer converts all objects of a request, or none.
func answer(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	response.ConvertedObjects = make([]runtime.RawExtension, len(request.Objects))
	var all errgroup.Group
	all.SetLimit(goruntime.GOMAXPROCS(0))
	for i, object := range request.Objects {
		all.Go(func() (failed error) {
			defer func() { // nobody else would, outside the goroutine of the request
				if r := recover(); r != nil {
					failed = fmt.Errorf("convert %s to %s: panic: %v", nameOf(object.Raw), request.DesiredAPIVersion, r)
				}
			}()
			converted, err := conversion.Convert(object.Raw, request.DesiredAPIVersion)
			if err != nil {
				return fmt.Errorf("convert %s to %s: %w", nameOf(object.Raw), request.DesiredAPIVersion, err)
			}
			response.ConvertedObjects[i].Raw = converted.JSON
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonBadRequest, Message: err.Error(),
		}}
	}
	return response
}

// nameOf names an object for a message, as far as it can be read.
func nameOf(raw []byte) string {
	var head metav1.PartialObjectMetadata
	if json.Unmarshal(raw, &head) != nil {
		return "an object that cannot be read"
	}
	return fmt.Sprintf("%s %s/%s", head.Kind, head.Namespace, head.Name)
}
