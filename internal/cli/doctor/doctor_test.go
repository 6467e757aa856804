package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestEveryLookIsTaken(t *testing.T) {
	finds := func(err error, findings ...finding) look {
		return look{of: func(context.Context, target) ([]finding, error) { return findings, err }}
	}
	forbidden := fmt.Errorf("list roles: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "", errors.New("you may not")))
	silence := errors.New("connection refused")
	for rule, c := range map[string]struct {
		looks   []look
		said    string
		problem string
	}{
		"all is well":                  {[]look{finds(nil, finding{what: "a"}), finds(nil, finding{verdict: note, what: "b"})}, "✓ a\n· b\n", ""},
		"a problem is an error":        {[]look{finds(nil, finding{verdict: wrong, what: "a", todo: "mend it"}), finds(nil, finding{what: "b"})}, "✗ a\n    mend it\n✓ b\n", "1 problems"},
		"one that fails hides no more": {[]look{finds(forbidden, finding{what: "a"}), finds(nil, finding{verdict: wrong, what: "b"})}, "✓ a\n✗ one look failed: list roles: roles is forbidden: you may not\n✗ b\n", "2 problems"},
		"nobody is asked for ever":     {[]look{finds(nil, finding{what: "a"}), finds(silence), finds(nil, finding{what: "b"})}, "✓ a\n", "connection refused"},
	} {
		t.Run(rule, func(t *testing.T) {
			var out strings.Builder
			err := examine(t.Context(), target{}, c.looks, &out)
			if (err != nil) != (c.problem != "") || err != nil && err.Error() != c.problem {
				t.Errorf("error %v, want %q", err, c.problem)
			}
			if diff := cmp.Diff(c.said, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
