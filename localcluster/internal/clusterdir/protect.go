package clusterdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// private is what of a mode is this user's own.
const private fs.FileMode = 0o700

// protect sees that the directory and what lies in it are this user's, and closes it to others whatever mode it came
// with. Files with keys are closed one by one too: they may be copied or moved elsewhere as they are.
func (d Dir) protect() error {
	paths := []string{string(d)}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("read cluster directory: %w", err)
	}
	for _, entry := range entries {
		paths = append(paths, filepath.Join(string(d), entry.Name()))
	}
	for _, path := range paths {
		if err := owned(path); err != nil {
			return err
		}
	}
	if err := closed(string(d)); err != nil {
		return err
	}
	for _, path := range []string{d.Kubeconfig(), d.stateFile(), d.PKI(), d.Config()} {
		err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink != 0 {
				return err
			}
			return closed(path)
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("close %s to others: %w", path, err)
		}
	}
	return nil
}

// owned refuses what belongs to another user, who could read and replace what is written there.
func owned(path string) error {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil // a link that leads nowhere, or gone since it was listed
		}
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return fmt.Errorf("%s belongs to user %d, not to user %d; choose another --dir: %w", path, stat.Uid, uid, ErrForeign)
	}
	return nil
}

// closed takes from all others what they may do with a file or folder.
func closed(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if mode := info.Mode().Perm(); mode&^private != 0 {
		if err := os.Chmod(path, mode&private); err != nil {
			return fmt.Errorf("close %s to others: %w", path, err)
		}
	}
	return nil
}
