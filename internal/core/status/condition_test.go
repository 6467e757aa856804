package status

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAMessageFitsIntoACondition(t *testing.T) {
	for rule, c := range map[string]struct {
		message string
		runes   int
		end     string
	}{
		"what fits stays whole":         {strings.Repeat("ä", 32768), 32768, "ää"},
		"what is longer is cut short":   {strings.Repeat("ä", 32769), 32768, "ä..."},
		"a message of bytes is as well": {strings.Repeat("a", 1<<20), 32768, "a..."},
	} {
		t.Run(rule, func(t *testing.T) {
			var all []metav1.Condition
			setCondition(&all, "Valid", condition{message: c.message}, 1, metav1.Time{})
			got := all[0].Message
			if n := utf8.RuneCountInString(got); n != c.runes || !strings.HasSuffix(got, c.end) || !utf8.ValidString(got) {
				t.Errorf("%d characters that end with %q, want %d with %q", n, got[len(got)-8:], c.runes, c.end)
			}
		})
	}
}
