package auditlog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSinceReadsWholeLinesAfterAPlace(t *testing.T) {
	const first, second = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"list"}` + "\n", `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"patch"}` + "\n"
	for rule, c := range map[string]struct {
		text  string
		place int
		want  []string
	}{
		"from the beginning all lines":                 {first + second, 0, []string{"list", "patch"}},
		"after a line the next":                        {first + second, len(first), []string{"patch"}},
		"a line that was being written came before":    {first + second, len(first) - 5, []string{"patch"}},
		"at the end nothing":                           {first + second, len(first + second), nil},
		"a line that is being written is not read yet": {first + second[:9], 0, []string{"list"}},
	} {
		t.Run(rule, func(t *testing.T) {
			log := Log(filepath.Join(t.TempDir(), "audit.log"))
			if err := os.WriteFile(string(log), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := log.Since(int64(c.place), func(e Entry) { got = append(got, e.Verb) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}

func TestALineIsWholeAlthoughTheOneBeforeWasNotFinished(t *testing.T) {
	const whole = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"list"}` + "\n"
	for name, line := range map[string]string{
		"a line":                      whole,
		"a line after half of one":    `{"kind":"Event","apiVersion":"audit.k8s.io/v1","ver` + whole,
		"a line after a few bytes":    `{"ki` + whole,
		"a line after two that ended": `{"kind":"Event","apiVersion":"audit.k8s.io/v1"{"kind":"Event","apiVersion":"audit.k8s.io/v1"` + whole,
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(lastEvent([]byte(line))); got != whole {
				t.Errorf("got %s", got)
			}
		})
	}
	if got := string(lastEvent([]byte(`{"verb":"list"}`))); got != `{"verb":"list"}` {
		t.Errorf("another line became %s", got)
	}
}
