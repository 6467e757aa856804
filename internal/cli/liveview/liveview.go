// Package liveview redraws lines of text in a terminal while they change.
package liveview

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// Picture shows a drawing that changes: in place on a terminal, as the lines
// that are new elsewhere.
type Picture struct {
	w     io.Writer
	live  bool
	shown []string
}

// New makes a picture on w.
func New(w io.Writer) *Picture {
	return &Picture{w: w, live: sanitise.IsTerminal(w)}
}

// Show replaces what was shown by these lines.
func (p *Picture) Show(lines []string) {
	if slices.Equal(lines, p.shown) {
		return
	}
	if p.live {
		if len(p.shown) > 0 {
			fmt.Fprintf(sanitise.Raw(p.w), "\x1b[%dA\x1b[J", len(p.shown))
		}
		fmt.Fprintln(p.w, strings.Join(lines, "\n"))
	} else {
		for _, line := range lines {
			if !slices.Contains(p.shown, line) {
				fmt.Fprintln(p.w, "  "+line)
			}
		}
	}
	p.shown = lines
}
