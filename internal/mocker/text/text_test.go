package text

import (
	"strings"
	"testing"
)

func TestTokenizeCountsByRuleOfThumb(t *testing.T) {
	for text, want := range map[string]int{"": 0, "one": 1, "four": 1, "longer": 2, "a  b\nc": 3, "übergröße": 3} {
		if got := len(Tokenize(text)); got != want {
			t.Errorf("%q has %d tokens, want %d", text, got, want)
		}
	}
	if a, b := Tokenize("same words"), Tokenize("same  words"); a[0] != b[0] || a[1] != b[1] {
		t.Error("equal pieces are different tokens")
	}
}

func TestAnswersDependOnThePromptAlone(t *testing.T) {
	say := func(prompt string) string {
		seed := Seed(Tokenize(prompt))
		var b strings.Builder
		for n := range 40 {
			_, word := At(seed, n)
			b.WriteString(word)
		}
		return b.String()
	}
	first, again := say("a question"), say("a question")
	if first != again {
		t.Error("the same prompt got two answers")
	}
	if first == say("another question") {
		t.Error("two prompts got the same answer")
	}
	if answer := say("x"); answer != strings.TrimSpace(answer) || len(strings.Fields(answer)) < 40 {
		t.Errorf("not a text: %q", answer)
	}
}

func TestNaturalLengthIsModest(t *testing.T) {
	for seed := range uint64(1000) {
		if n := NaturalLength(seed << 33); n < 48 || n > 144 {
			t.Fatalf("length %d", n)
		}
	}
}
