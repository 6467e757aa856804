//go:build unguarded

package sanitise

import (
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestWithoutSanitisingATerminalIsCommanded: the same words that TestText has
// neutralised reach a terminal as they were written, through every way out.
func TestWithoutSanitisingATerminalIsCommanded(t *testing.T) {
	const attack = "x\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2A\u202e"
	t.Setenv(guard.Variable, string(Terminal))
	var out strings.Builder
	if _, err := NewWriter(&out).Write([]byte(attack)); err != nil {
		t.Fatal(err)
	}
	for way, got := range map[string]string{"Text": Text(attack), "Line": Line(attack), "Writer": out.String()} {
		if got != attack {
			t.Errorf("%s neutralises without the guard: %q", way, got)
		}
	}
}
