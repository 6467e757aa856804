package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// mostUnfit is how many fields a warning names.
const mostUnfit = 5

// payload warns of what does not count in the annotation that keeps what v1alpha1
// cannot say. It is no reason to refuse an object: releases of the original admitted
// whatever stood there, and their objects carry it.
func (w *warnings) payload(object graph.Object) {
	misfit, found := conversion.Unfit(object)
	if !found {
		return
	}
	at := field.NewPath("metadata", "annotations").Key(misfit.Annotation)
	if misfit.Unreadable {
		w.add(at, "is ignored; it is not what a conversion writes, which is JSON with version 1 and a spec")
		return
	}
	fields := misfit.Fields
	if len(fields) > mostUnfit {
		fields = append(fields[:mostUnfit:mostUnfit], "...")
	}
	w.add(at, "is ignored where it contradicts the fields of the object, in v1beta1 "+strings.Join(fields, ", "))
}
