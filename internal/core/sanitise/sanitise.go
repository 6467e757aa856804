// Package sanitise makes text of others safe to show. Log lines, image names and
// messages come from tenants and end on an administrator's terminal, which obeys
// control characters: OSC 52 writes its clipboard, OSC 8 hides where a link leads,
// CSI moves over what stands above, and Unicode's bidirectional controls turn a
// line round. It is pure.
package sanitise

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// sequence is a complete escape sequence, as ECMA-48 has them: CSI with its
// parameters, a control string (DCS, SOS, OSC, PM, APC) up to its end, or a short
// one of two or three characters. Engines colour their logs, so these are dropped
// as a whole instead of being shown.
var sequence = regexp.MustCompile(
	`(?:\x1b\[|\x{9b})[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]` +
		`|(?:\x1b[PX\]^_]|[\x{90}\x{98}\x{9d}\x{9e}\x{9f}])[^\x07\x1b\x{9c}\n]*(?:\x07|\x1b\\|\x{9c})` +
		`|\x1b[\x20-\x2f]*[0-OQ-WYZ\\\x60-\x7e]`)

// Terminal keeps what tenants write from commanding a terminal.
const Terminal guard.Guard = "terminal"

// Text is the text without terminal escape sequences. A control character that is
// part of none, and each character that is not to be seen but changes how others
// are, becomes U+FFFD; line breaks and tabs stay. What it returns it returns
// again unchanged.
func Text(text string) string {
	if clean(text) || Terminal.Off() {
		return text
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = sequence.ReplaceAllString(text, "")
	return strings.Map(func(r rune) rune {
		if harmless(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// Line is Text in one line: each run of white space is one space.
func Line(text string) string { return strings.Join(strings.Fields(Text(text)), " ") }

// clean is the common case, which costs no copy.
func clean(text string) bool {
	for i, r := range text {
		if !harmless(r) {
			return false
		}
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return false // a byte that is no UTF-8, which a terminal may take for a C1 control
		}
	}
	return true
}

// Joiners are format characters that words of several scripts, and emoji, are
// written with.
const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'

// harmless reports whether a terminal shows a character and does nothing else.
func harmless(r rune) bool {
	switch r {
	case '\n', '\t', zeroWidthNonJoiner, zeroWidthJoiner:
		return true
	default:
		return !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	}
}
