package clusterdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Unix socket's path is limited to 107 bytes by the kernel; the longest name used below a socket directory is
// well under this reserve.
const (
	maxSocketPath     = 107
	socketNameReserve = 24
)

const temporaryPrefix = "localcluster-"

// MakeSocketDir returns an empty, private directory short enough for Unix sockets: inside the cluster's directory if
// that is not too deep, otherwise a temporary one.
func (d Dir) MakeSocketDir() (string, error) {
	inside := filepath.Join(string(d), "run")
	if len(inside)+socketNameReserve <= maxSocketPath {
		// Emptied, because a socket file that outlived its server blocks the next listener.
		if err := os.RemoveAll(inside); err != nil {
			return "", fmt.Errorf("empty socket directory: %w", err)
		}
		if err := os.Mkdir(inside, 0o700); err != nil {
			return "", fmt.Errorf("create socket directory: %w", err)
		}
		return inside, nil
	}
	base := os.TempDir()
	if len(base)+len("/")+len(temporaryPrefix)+len("0123456789")+socketNameReserve > maxSocketPath {
		base = "/tmp"
	}
	short, err := os.MkdirTemp(base, temporaryPrefix)
	if err != nil {
		return "", fmt.Errorf("create socket directory: %w", err)
	}
	return short, nil
}

// RemoveSocketDir removes what MakeSocketDir made. It is called again before a start, in case the last run was killed,
// and so refuses any path that a damaged cluster.json might name.
func (d Dir) RemoveSocketDir(path string) {
	if path == filepath.Join(string(d), "run") || strings.HasPrefix(filepath.Base(path), temporaryPrefix) {
		_ = os.RemoveAll(path) // the next start tries again
	}
}
