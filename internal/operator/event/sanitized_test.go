package event

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
)

// notes keeps what it is told.
type notes []string

func (n *notes) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	*n = append(*n, fmt.Sprintf(note, args...))
}

func (n *notes) AnnotatedEventf(_, _ runtime.Object, _ map[string]string, _, _, _, note string, args ...any) {
	*n = append(*n, fmt.Sprintf(note, args...))
}

func TestANoteIsSafeToShowAndShortEnough(t *testing.T) {
	for rule, c := range map[string]struct{ said, want string }{
		"what a terminal obeys is left out": {"pull \x1b]52;c;YQ==\x07x\u202e", "note: pull x\ufffd"},
		"what looks like a format stays":    {"100%s", "note: 100%s"},
		"a long one is cut between letters": {strings.Repeat("ü", limit), "note: " + strings.Repeat("ü", (limit-4-len("note: "))/2) + " ..."},
	} {
		t.Run(rule, func(t *testing.T) {
			var told notes
			r := Sanitised(&told)
			r.Eventf(nil, nil, "", "", "", "note: %s", c.said)
			r.AnnotatedEventf(nil, nil, nil, "", "", "", "note: %s", c.said)
			for _, note := range told {
				if note != c.want || len(note) > limit || !utf8.ValidString(note) {
					t.Errorf("got %q", note)
				}
			}
			if len(told) != 2 {
				t.Errorf("%d notes", len(told))
			}
		})
	}
}
