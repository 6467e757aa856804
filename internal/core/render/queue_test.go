package render_test

import (
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestQueue(t *testing.T) {
	kai := snapshot.Capabilities{snapshot.APIKAI: true}
	cases := map[string]struct {
		annotation string
		have       snapshot.Capabilities
		want       string
	}{
		"blanks around a name do not count": {"  q  ", kai, "q"},
		"a blank name is the default":       {"  ", kai, "dynamo"},
		"no name is the default":            {"", kai, "dynamo"},
		"without KAI there is no queue":     {"q", nil, ""},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := render.Queue(map[string]string{v1alpha1.AnnotationKaiQueue: c.annotation}, c.have); got != c.want {
				t.Errorf("queue %q, want %q", got, c.want)
			}
		})
	}
}
