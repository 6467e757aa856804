package installation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// ending is a context whose deadline has passed before it ends, as it has on a machine
// that is busy.
type ending struct {
	context.Context

	over bool
}

func (e *ending) Deadline() (time.Time, bool) {
	if e.over {
		return time.Now().Add(-time.Second), true
	}
	return time.Now().Add(time.Hour), true
}

func TestWhatIsWaitedForIsToldAndNotWhatCutItShort(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx, asked := &ending{Context: parent}, 0
	err := until(ctx, "the operator to be ready", func(context.Context) error {
		asked++
		if asked == 1 {
			return errors.New("0 of 2 replicas available")
		}
		ctx.over = true
		time.AfterFunc(time.Millisecond, cancel)
		return errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline")
	})
	if err == nil || !strings.Contains(err.Error(), "0 of 2 replicas available") || strings.Contains(err.Error(), "rate limiter") {
		t.Error(err)
	}
}
