package sanitise

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for rule, c := range map[string]struct{ text, want string }{
		"plain text stays":                       {"a line\tof text\nand ünïcode 漢字 ✓ 👩\u200d🚀", "a line\tof text\nand ünïcode 漢字 ✓ 👩\u200d🚀"},
		"colour is dropped":                      {"\x1b[1;31mERROR\x1b[0m boom", "ERROR boom"},
		"the clipboard is not written (OSC 52)":  {"x\x1b]52;c;cm0gLXJmIC8=\x07y", "xy"},
		"nor with the other end of a string":     {"x\x1b]52;c;cm0gLXJmIC8=\x1b\\y", "xy"},
		"a link shows its text alone (OSC 8)":    {"\x1b]8;;https://evil.example\x07docs\x1b]8;;\x07", "docs"},
		"the title is not set (OSC 0)":           {"\x1b]0;owned\x07ok", "ok"},
		"a string without an end hides nothing":  {"\x1b]52;c;abc", "\ufffd]52;c;abc"},
		"nor does it reach into the next line":   {"\x1b]52;c;abc\nnext\x07", "\ufffd]52;c;abc\nnext\ufffd"},
		"nothing above is written over":          {"\x1b[2A\x1b[2Kall is well", "all is well"},
		"nor with the one-character form (C1)":   {"\u009b2A\u009d52;c;abc\u009cx", "x"},
		"nor with the byte of that form":         {"\x9b2Ax", "\ufffd2Ax"},
		"a device control string":                {"\x1bPq#0\x1b\\x", "x"},
		"a reset of the terminal":                {"\x1bcx", "x"},
		"another character set":                  {"\x1b(0x", "x"},
		"a bare escape":                          {"x\x1b", "x\ufffd"},
		"a carriage return that covers a line":   {"bad\rgood", "bad\ufffdgood"},
		"a line break of other systems":          {"a\r\nb", "a\nb"},
		"backspace, bell, delete":                {"a\b\a\x7f", "a\ufffd\ufffd\ufffd"},
		"a line that is turned round":            {"user\u202e\u2066gpj.exe", "user\ufffd\ufffdgpj.exe"},
		"marks of direction":                     {"a\u200eb\u200fc\u061cd", "a\ufffdb\ufffdc\ufffdd"},
		"separators of lines and paragraphs":     {"a\u2028b\u2029", "a\ufffdb\ufffd"},
		"what is not to be seen":                 {"a\u200bb\ufeffc\U000e0041", "a\ufffdb\ufffdc\ufffd"},
		"bytes that are no text":                 {"a\xff\xfeb", "a\ufffdb"},
		"a sequence made of what is left of two": {"\x1b\x1b[0m[31mx", "\ufffd[31mx"},
	} {
		t.Run(rule, func(t *testing.T) {
			if got := Text(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			unsafe(t, c.text)
		})
	}
}

// unsafe fails if what is left of a text could do something to a terminal.
func unsafe(t *testing.T, text string) {
	t.Helper()
	got := Text(text)
	for _, r := range got {
		if r != '\n' && r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Errorf("%U is left in %q", r, got)
		}
	}
	if !utf8.ValidString(got) {
		t.Errorf("%q is no UTF-8", got)
	}
	if again := Text(got); again != got {
		t.Errorf("%q becomes %q the second time", got, again)
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b]52;c;YQ==\x07", "\x1b]8;;u\x1b\\t", "\u009b31m\u202e", "\x9b\x9d\xc2", "\x1b\x1b[0m[31m", "\x1bP\x1b]0;\x07"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { unsafe(t, text) })
}

func TestLineIsOne(t *testing.T) {
	if got := Line(" a\n\tb\u2028c\x1b[K "); got != "a b\ufffdc" {
		t.Errorf("%q", got)
	}
}

// TestAWriterTakesTextInPieces writes it byte by byte: characters stay whole, and
// no split lets a control character through.
func TestAWriterTakesTextInPieces(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, b := range []byte("漢字 ✓\u009b31m \u202e\x1b]52;c;YQ==\x07 end\n") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := out.String(); !strings.HasPrefix(got, "漢字 ✓\ufffd31m \ufffd\ufffd]52;c;") || !strings.HasSuffix(got, " end\n") {
		t.Errorf("%q", got)
	}
	unsafe(t, out.String())
	if Raw(w) != &out || Document(w) != &out {
		t.Error("a buffer is no terminal")
	}
}
