package sanitise

import (
	"io"
	"os"
	"slices"
	"unicode/utf8"
)

// Writer passes text on to a terminal, sanitised. Programs that move the cursor
// themselves write that to Raw, and only that.
type Writer struct {
	raw io.Writer
	// rest is the beginning of a character whose end has not been written yet.
	rest []byte
}

// NewWriter sanitises what goes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{raw: w} }

// Write takes all of it: what is left out counts as written.
func (w *Writer) Write(text []byte) (int, error) {
	whole := slices.Concat(w.rest, text)
	end := complete(whole)
	w.rest = append([]byte(nil), whole[end:]...)
	if _, err := io.WriteString(w.raw, Text(string(whole[:end]))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// complete is where the last whole character ends.
func complete(text []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		at := len(text) - back
		if utf8.RuneStart(text[at]) {
			if utf8.FullRune(text[at:]) {
				break
			}
			return at
		}
	}
	return len(text)
}

// Raw is the way past the sanitising, for escape sequences of our own.
func Raw(w io.Writer) io.Writer {
	if s, ok := w.(*Writer); ok {
		return s.raw
	}
	return w
}

// Document is where a manifest goes: to a file or a pipe as it is, because what
// reads it there is a program; to a terminal sanitised.
func Document(w io.Writer) io.Writer {
	if IsTerminal(w) {
		return w
	}
	return Raw(w)
}

// IsTerminal reports whether a person looks at what is written.
func IsTerminal(w io.Writer) bool {
	file, ok := Raw(w).(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
