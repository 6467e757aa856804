package clusterdir

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrDiskFull says that there is too little room to start.
var ErrDiskFull = errors.New("too little disk space")

// MinimumFree is what etcd, logs and a few volumes need; starting with less ends in errors that name other causes.
const MinimumFree = 1 << 30

// CheckDisk refuses a file system with less than need bytes free for this user.
func (d Dir) CheckDisk(need uint64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(string(d), &fs); err != nil {
		return fmt.Errorf("measure free space of %s: %w", d, err)
	}
	free := fs.Bavail * uint64(fs.Bsize)
	if free < need {
		return fmt.Errorf("%s has %d MiB free, %d MiB are needed: %w", d, free>>20, need>>20, ErrDiskFull)
	}
	return nil
}
