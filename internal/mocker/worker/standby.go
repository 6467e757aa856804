package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// standByPause is how often an engine looks whether the other is gone.
const standByPause = 200 * time.Millisecond

// errNotServing ends an engine that never came to serve.
var errNotServing = errors.New("ended while standing by")

// standBy waits until this engine is the one of its pod that serves. With shadow
// engines the first to take the lock does; the others have loaded everything,
// answer their probes, and take over when it ends. The returned function lets
// the next one in.
//
// The lock is a socket's name of the pod's network rather than the file that is
// named, for files are never written here: it ends with its process all the
// same. Engines in different pods do not see each other's and each of them
// serves.
func (w *Worker) standBy(ctx context.Context, crash <-chan time.Time) (func(), error) {
	file := w.env["FAILOVER_LOCK_PATH"]
	if file == "" || !w.env.Bool("DYN_VLLM_GMS_SHADOW_MODE", false) {
		return func() {}, nil
	}
	name := fmt.Sprintf("@dynamo-mocker/%x", sha256.Sum256([]byte(w.env.ListenHost()+" "+file)))
	told := false
	for {
		lock, err := net.Listen("unix", name[:len("@dynamo-mocker/")+32])
		if err == nil {
			w.health.Standby(false)
			w.log.Info("this engine serves", "engine", w.env["ENGINE_ID"], "lock", file)
			return func() { _ = lock.Close() }, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("take the lock %s: %w", file, err)
		}
		if !told {
			told = true
			w.health.Standby(true)
			w.log.Info("standing by for the engine that serves", "engine", w.env["ENGINE_ID"], "lock", file)
		}
		select {
		case <-time.After(standByPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-crash:
			return nil, errNotServing
		}
	}
}
