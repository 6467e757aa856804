package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// Result is an object in another version.
type Result struct {
	JSON []byte
	// Ignored are the parts of the old payload that did not count.
	Ignored []string
}

// kinds convert an object of each kind that has two versions, up and down. The
// functions take objects that are theirs.
var kinds = map[string]struct{ up, down func([]byte) (Result, error) }{
	v1alpha1.KindDynamoGraphDeployment: {
		upBy(v1alpha1.AnnotationGraphPayload, graphToBeta),
		downBy(v1alpha1.AnnotationGraphPayload, graphToAlpha, func(g *v1beta1.DynamoGraphDeployment) any { return &g.Spec }),
	},
	v1alpha1.KindDynamoComponentDeployment: {
		upBy(v1alpha1.AnnotationComponentPayload, componentToBeta),
		downBy(v1alpha1.AnnotationComponentPayload, componentToAlpha, func(c *v1beta1.DynamoComponentDeployment) any { return &c.Spec }),
	},
	v1alpha1.KindDynamoGraphDeploymentRequest: {
		upBy(v1alpha1.AnnotationRequestPayload, requestToBeta),
		downBy(v1alpha1.AnnotationRequestPayload, requestToAlpha, func(r *v1beta1.DynamoGraphDeploymentRequest) any { return &r.Spec }),
	},
	v1alpha1.KindDynamoGraphDeploymentScalingAdapter: {
		upBy("", lossless(AdapterToBeta)),
		downBy("", lossless(AdapterToAlpha), nil),
	},
}

// lossless is a conversion that needs no payload.
func lossless[In, Out any](convert func(In) Out) func(In) (Out, []string) {
	return func(in In) (Out, []string) { return convert(in), nil }
}

// Convertible reports whether a kind has two versions.
func Convertible(kind string) bool {
	_, ok := kinds[kind]
	return ok
}

// Convert turns an object, as JSON, into a version of our API, given as in
// apiVersion. An object that has that version already is returned as it is.
func Convert(raw []byte, apiVersion string) (Result, error) {
	head, err := typeOf(raw)
	if err != nil {
		return Result{}, fmt.Errorf("decode the object: %w", err)
	}
	alpha, beta := v1alpha1.SchemeGroupVersion.String(), v1beta1.SchemeGroupVersion.String()
	if head.APIVersion != alpha && head.APIVersion != beta {
		return Result{}, fmt.Errorf("no conversion from apiVersion %q", head.APIVersion)
	}
	if apiVersion != alpha && apiVersion != beta {
		return Result{}, fmt.Errorf("no conversion to apiVersion %q", apiVersion)
	}
	kind, ok := kinds[head.Kind]
	switch {
	case !ok:
		return Result{}, fmt.Errorf("kind %q has one version", head.Kind)
	case head.APIVersion == apiVersion:
		if !json.Valid(raw) {
			return Result{}, errors.New("decode the object: it is no JSON")
		}
		return Result{JSON: raw}, nil
	case apiVersion == beta:
		return kind.up(raw)
	default:
		return kind.down(raw)
	}
}

// heads are how objects of our kinds begin when an API server writes them, or we.
var heads = func() map[string]metav1.TypeMeta {
	all := map[string]metav1.TypeMeta{}
	for kind := range kinds {
		for _, version := range []string{v1alpha1.SchemeGroupVersion.String(), v1beta1.SchemeGroupVersion.String()} {
			head := metav1.TypeMeta{APIVersion: version, Kind: kind}
			all[fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, version, kind)] = head
			all[fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, kind, version)] = head
		}
	}
	return all
}()

// typeOf reads version and kind, of most objects without reading the rest.
func typeOf(raw []byte) (head metav1.TypeMeta, err error) {
	for prefix, known := range heads {
		if bytes.HasPrefix(raw, []byte(prefix)) {
			return known, nil
		}
	}
	err = json.Unmarshal(raw, &head)
	return head, err
}

// upBy converts to v1beta1 by a typed function.
func upBy[In, Out any](key string, convert func(*In) (*Out, []string)) func([]byte) (Result, error) {
	return func(raw []byte) (Result, error) {
		in := new(In)
		if err := unmarshal(raw, in); err != nil {
			return Result{}, fmt.Errorf("decode the object: %w", err)
		}
		payload := ""
		if object, ok := any(in).(metav1.Object); ok {
			payload = object.GetAnnotations()[key]
		}
		out, ignored := convert(in)
		text, err := encodeObject(out)
		if err != nil {
			return Result{}, fmt.Errorf("encode the converted object: %w", err)
		}
		text = restoreEmpty[Out](text, payload)
		return Result{JSON: text, Ignored: ignored}, nil
	}
}

// downBy converts to v1alpha1, the stored version, by a typed function. What was
// written there is stored as it is; what was written as v1beta1 is kept here.
func downBy[In, Out any](key string, convert func(*In) (*Out, []string), spec func(*In) any) func([]byte) (Result, error) {
	return func(raw []byte) (Result, error) {
		in := new(In)
		if err := unmarshal(raw, in); err != nil {
			return Result{}, fmt.Errorf("decode the object: %w", err)
		}
		var empty []written
		if spec != nil {
			empty = writtenEmpty(raw, spec(in))
		}
		out, ignored := convert(in)
		if object, ok := any(out).(metav1.Object); ok {
			keepEmpty(object, key, empty)
		}
		text, err := encodeObject(out)
		if err != nil {
			return Result{}, fmt.Errorf("encode the converted object: %w", err)
		}
		return Result{JSON: text, Ignored: ignored}, nil
	}
}
