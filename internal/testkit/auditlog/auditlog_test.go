package auditlog

import "testing"

func TestALineIsWholeAlthoughTheOneBeforeWasNotFinished(t *testing.T) {
	const whole = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"list"}` + "\n"
	for name, line := range map[string]string{
		"a line":                      whole,
		"a line after half of one":    `{"kind":"Event","apiVersion":"audit.k8s.io/v1","ver` + whole,
		"a line after a few bytes":    `{"ki` + whole,
		"a line after two that ended": `{"kind":"Event","apiVersion":"audit.k8s.io/v1"{"kind":"Event","apiVersion":"audit.k8s.io/v1"` + whole,
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(Whole([]byte(line))); got != whole {
				t.Errorf("got %s", got)
			}
		})
	}
	if got := string(Whole([]byte(`{"verb":"list"}`))); got != `{"verb":"list"}` {
		t.Errorf("another line became %s", got)
	}
}
