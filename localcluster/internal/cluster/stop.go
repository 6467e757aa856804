package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// stopTimeout is how long a supervisor may take; all its programs together need less.
const stopTimeout = 30 * time.Second

// Stop ends the cluster of a directory and returns when none of its processes is left. It reports whether one ran.
func Stop(ctx context.Context, dir clusterdir.Dir) (bool, error) {
	pid, err := dir.Holder()
	if err != nil {
		return false, err
	}
	if pid != 0 {
		if err := end(ctx, dir, pid); err != nil {
			return true, err
		}
	}
	// A supervisor that was killed could not tidy up.
	if state, err := dir.ReadState(); err == nil {
		dir.RemoveSocketDir(state.SocketDir)
	}
	return pid != 0, nil
}

func end(ctx context.Context, dir clusterdir.Dir, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop supervisor %d: %w", pid, err)
	}
	patience, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := waitUnlocked(patience, dir)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// The programs die with their supervisor, but an instant later.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill supervisor %d: %w", pid, err)
	}
	if err := waitUnlocked(ctx, dir); err != nil {
		return err
	}
	return supervisor.AwaitEnd(ctx, dir)
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
		pid, err := dir.Holder()
		if err != nil {
			return clusterdir.State{}, err
		}
		if pid == 0 {
			return clusterdir.State{}, fmt.Errorf("the supervisor of %s ended before the cluster was ready", dir)
		}
		// The file may still be that of an earlier supervisor, which was killed.
		if state, err := dir.ReadState(); err == nil && state.Ready && state.SupervisorPID == pid {
			return state, nil
		}
		select {
		case <-ctx.Done():
			return clusterdir.State{}, fmt.Errorf("wait for the supervisor of %s: %w", dir, ctx.Err())
		case <-ticker.C:
		}
	}
}
