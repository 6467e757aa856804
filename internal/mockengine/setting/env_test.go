package setting

import (
	"testing"
	"time"
)

func TestDurationsAreSecondsOrWords(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Minute, "5": 5 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second} {
		if got, err := (Env{"D": text}).Duration("D", time.Minute); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := (Env{"D": "soon"}).Duration("D", 0); err == nil {
		t.Error("a word was taken for a duration")
	}
}

func TestAdvertisedHost(t *testing.T) {
	for name, c := range map[string]struct {
		env  Env
		want string
	}{
		"the pod's address on paper first":   {Env{"DYNAMO_POD_IP": "10.16.0.2", "DYNAMO_LISTEN_HOST": "127.16.0.2"}, "10.16.0.2"},
		"then the address listened on":       {Env{"DYNAMO_LISTEN_HOST": "127.16.0.2"}, "127.16.0.2"},
		"loopback on a machine without pods": {Env{}, "127.0.0.1"},
	} {
		if got := c.env.AdvertiseHost(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestNumbersSayWhichVariableIsWrong(t *testing.T) {
	env := Env{"N": "x"}
	if _, err := env.Int("N", 0); err == nil {
		t.Error("Int accepted x")
	}
	if _, err := env.Float("N", 0); err == nil {
		t.Error("Float accepted x")
	}
	if n, err := env.Int("M", 3); err != nil || n != 3 {
		t.Errorf("default is %d, %v", n, err)
	}
	for text, want := range map[string]bool{"": true, "TRUE": true, "1": true, "no": false, "false": false} {
		if got := (Env{"B": text}).Bool("B", true); got != want {
			t.Errorf("Bool(%q) = %v, want %v", text, got, want)
		}
	}
}
