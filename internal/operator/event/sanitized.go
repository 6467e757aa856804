package event

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// Sanitised is a recorder for notes that may quote what a tenant wrote: they are
// safe to show, and as short as the API wants them.
func Sanitised(r recorder.EventRecorder) recorder.EventRecorder { return sanitised{r} }

type sanitised struct{ to recorder.EventRecorder }

func (s sanitised) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	s.to.Eventf(regarding, related, kind, reason, action, "%s", safe(note, args...))
}

func (s sanitised) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, kind, reason, action, note string, args ...any) {
	s.to.AnnotatedEventf(regarding, related, annotations, kind, reason, action, "%s", safe(note, args...))
}

func safe(note string, args ...any) string {
	return shortened(sanitise.Text(fmt.Sprintf(note, args...)))
}
