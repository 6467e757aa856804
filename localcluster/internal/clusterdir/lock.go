package clusterdir

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked says that a supervisor already runs this cluster.
var ErrLocked = errors.New("cluster is already running")

// Lock makes this process the only supervisor of the directory until it ends. A POSIX record lock is used because the
// kernel drops it however the process dies and tells others the holder's pid, so no pid file can be stale.
// The lock file must be opened once per process: closing any descriptor of it gives the lock up.
func (d Dir) Lock() (io.Closer, error) {
	file, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	request := wholeFile()
	if err := unix.FcntlFlock(file.Fd(), unix.F_SETLK, &request); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return nil, fmt.Errorf("lock %s: %w", d, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", d, err)
	}
	return file, nil
}

// Holder returns the pid of the supervisor that runs this cluster, or 0.
func (d Dir) Holder() (int, error) {
	file, err := os.OpenFile(d.lockFile(), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open lock: %w", err)
	}
	defer func() { _ = file.Close() }()
	request := wholeFile()
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &request); err != nil {
		return 0, fmt.Errorf("query lock of %s: %w", d, err)
	}
	if request.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(request.Pid), nil
}

func wholeFile() unix.Flock_t {
	return unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
}
