package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
)

// stopTimeout is how long a supervisor may take; all its programs together need less.
const stopTimeout = 30 * time.Second

// Stop ends the cluster of a directory and returns when none of its processes is left. It reports whether one ran.
func Stop(ctx context.Context, dir clusterdir.Dir) (bool, error) {
	pid, err := dir.Holder()
	if err != nil || pid == 0 {
		return false, err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return true, fmt.Errorf("stop supervisor %d: %w", pid, err)
	}
	patience, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := waitUnlocked(patience, dir); err == nil || ctx.Err() != nil {
		return true, ctx.Err()
	}
	// The programs die with their supervisor.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return true, fmt.Errorf("kill supervisor %d: %w", pid, err)
	}
	return true, waitUnlocked(ctx, dir)
}

func waitUnlocked(ctx context.Context, dir clusterdir.Dir) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		pid, err := dir.Holder()
		if err != nil || pid == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Await returns the state of a cluster that another process is starting, once it is ready.
func Await(ctx context.Context, dir clusterdir.Dir) (clusterdir.State, error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if state, err := dir.ReadState(); err == nil && state.Ready {
			return state, nil
		}
		if pid, err := dir.Holder(); err != nil || pid == 0 {
			return clusterdir.State{}, errors.Join(fmt.Errorf("the supervisor of %s ended before the cluster was ready", dir), err)
		}
		select {
		case <-ctx.Done():
			return clusterdir.State{}, fmt.Errorf("wait for the supervisor of %s: %w", dir, ctx.Err())
		case <-ticker.C:
		}
	}
}
