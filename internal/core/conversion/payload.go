package conversion

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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

// WrittenAs is the version that a v1alpha1 object was last written as. An object
// that was written as v1beta1 means what its v1beta1 form says.
func WrittenAs(alpha metav1.Object) string {
	if alpha.GetAnnotations()[v1alpha1.AnnotationWrittenAs] == Beta {
		return Beta
	}
	return Alpha
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
