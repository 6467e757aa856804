package conversion

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// payloadVersion is the version of the envelope.
const payloadVersion = 1

// envelope is what a payload annotation holds. Its first two fields are the
// original's.
type envelope[Spec any] struct {
	Version int  `json:"version"`
	Spec    Spec `json:"spec"`
	// Absent names fields that the source did not have although the target says
	// something for them.
	Absent []string `json:"absent,omitempty"`
}

// scrubbed are annotations that belong to a conversion and never survive one:
// payloads of the other direction, and what the original kept of a status.
var scrubbed = []string{
	v1alpha1.AnnotationGraphPayload, v1alpha1.AnnotationComponentPayload, v1alpha1.AnnotationRequestPayload,
	"nvidia.com/dgd-status", "nvidia.com/dcd-status", "nvidia.com/dgdr-status",
	v1alpha1.AnnotationWrittenAs,
}

// take reads the payload under a key and removes everything from the metadata
// that belongs to conversion. It reports whether there was a payload, and whether
// it could be read.
func take[Spec any](meta *metav1.ObjectMeta, key string) (payload envelope[Spec], present, readable bool) {
	text, present := meta.Annotations[key]
	if present {
		if err := unmarshal([]byte(text), &payload); err == nil && payload.Version == payloadVersion {
			readable = true
		} else {
			payload = envelope[Spec]{}
		}
	}
	if len(meta.Annotations) == 0 {
		return payload, present, readable
	}
	kept := maps.Clone(meta.Annotations)
	for _, name := range scrubbed {
		delete(kept, name)
	}
	if len(kept) == 0 {
		kept = nil
	}
	meta.Annotations = kept
	return payload, present, readable
}

// put writes a payload.
func put[Spec any](meta *metav1.ObjectMeta, key string, payload envelope[Spec]) {
	text, err := marshal(envelope[any]{payloadVersion, wireSpec(&payload.Spec), payload.Absent})
	if err != nil {
		// The spec is one that was decoded from JSON, or is about to be encoded to
		// it with the same failure.
		return
	}
	annotate(meta, key, string(text))
}

// GuardAnnotations keeps a converted object within the annotations that an object may
// have. API servers refuse a larger one, and with it the list that it is in: a tenant
// could keep all of v1beta1 from being read, by the garbage collector, too.
const GuardAnnotations guard.Guard = "payload-size"

// annotate writes an annotation, if the object may have it.
func annotate(meta *metav1.ObjectMeta, key, value string) {
	if !fits(meta.Annotations, key, value) {
		return
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
}

// fits reports whether annotations have room for one more.
func fits(annotations map[string]string, key, value string) bool {
	size := len(key) + len(value)
	for k, v := range annotations {
		if k != key {
			size += len(k) + len(v)
		}
	}
	return size <= validation.TotalAnnotationSizeLimitB || GuardAnnotations.Off()
}

// WrittenAs is the version that a v1alpha1 object was last written as, by our word for
// it.
func WrittenAs(alpha metav1.Object) string {
	if alpha.GetAnnotations()[v1alpha1.AnnotationWrittenAs] == Beta {
		return Beta
	}
	return Alpha
}

// MeansBeta reports whether a v1alpha1 object means what its v1beta1 form says: it was
// written as that, or its payload says what v1alpha1 cannot. The original writes such a
// payload without our word for it, and v1beta1 may have been edited since.
func MeansBeta(alpha metav1.Object) bool {
	if WrittenAs(alpha) == Beta {
		return true
	}
	meta := metav1.ObjectMeta{Annotations: alpha.GetAnnotations()}
	switch o := alpha.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		payload, _, _ := take[v1beta1.DynamoGraphDeploymentSpec](&meta, v1alpha1.AnnotationGraphPayload)
		return slices.ContainsFunc(payload.Spec.Components, func(c v1beta1.Component) bool {
			_, there := o.Spec.Services[c.Name]
			return there && beyond(&c)
		})
	case *v1alpha1.DynamoComponentDeployment:
		payload, _, _ := take[v1beta1.DynamoComponentDeploymentSpec](&meta, v1alpha1.AnnotationComponentPayload)
		return beyond(&payload.Spec.Component)
	default:
		return false
	}
}

// Order is the names of a graph's services in the order that its v1beta1 form has, which
// also one of v1alpha1 may carry.
func Order(alpha *v1alpha1.DynamoGraphDeployment) []string {
	names := slices.Sorted(maps.Keys(alpha.Spec.Services))
	meta := metav1.ObjectMeta{Annotations: alpha.Annotations}
	payload, _, _ := take[v1beta1.DynamoGraphDeploymentSpec](&meta, v1alpha1.AnnotationGraphPayload)
	order := make([]string, len(payload.Spec.Components))
	for i, c := range payload.Spec.Components {
		order[i] = c.Name
	}
	reorder(names, order, func(name string) string { return name })
	return names
}

// beyond reports whether a component of a payload says what v1alpha1 cannot, and not its
// place among others alone.
func beyond(c *v1beta1.Component) bool {
	return c.PodTemplate != nil || c.FrontendSidecar != "" || c.Experimental != nil
}

// origin is the version that a v1beta1 object was first written as, by our word for
// it. Without one, an object that carries a payload came from v1alpha1, unless it
// says what v1alpha1 cannot: then the payload is what v1alpha1 was given later.
func origin(word string, payload, beyond bool) string {
	switch {
	case word == Alpha, word == Beta:
		return word
	case payload && !beyond:
		return Alpha
	default:
		return Beta
	}
}
