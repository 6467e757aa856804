// Package clusterdir knows what lies in a cluster's directory: where each file is, who may use the directory, and the
// state a stopped cluster needs to come back. It starts nothing and talks to no server.
package clusterdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// EnvDir names the environment variable that replaces the default directory.
const EnvDir = "LOCALCLUSTER_DIR"

const defaultName = ".localcluster"

// ErrForeign says that a directory holds files which are not those of a cluster.
var ErrForeign = errors.New("directory holds something else")

// Dir is the absolute path of one cluster's directory.
type Dir string

// Resolve turns the --dir flag into a directory: the flag, else $LOCALCLUSTER_DIR, else .localcluster here.
func Resolve(flag string) (Dir, error) {
	name := flag
	if name == "" {
		name = os.Getenv(EnvDir)
	}
	if name == "" {
		name = defaultName
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("resolve cluster directory %q: %w", name, err)
	}
	return Dir(abs), nil
}

// Create makes the directory, or accepts one that is empty or already a cluster's. Keys and tokens lie in it, so it is
// this user's, and closed to all others, before anything is written.
func (d Dir) Create() error {
	info, err := os.Stat(string(d))
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(string(d), 0o700); err != nil {
			return fmt.Errorf("create cluster directory: %w", err)
		}
		return d.protect()
	case err != nil:
		return fmt.Errorf("look at cluster directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("cluster directory %s is a file: %w", d, ErrForeign)
	}

	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("read cluster directory: %w", err)
	}
	if len(entries) > 0 && !d.ours() {
		return fmt.Errorf("%s is not empty and has no cluster.json; choose another --dir: %w", d, ErrForeign)
	}
	return d.protect()
}

// ours accepts the lock file alone too: a first `up` that was interrupted leaves nothing else behind.
func (d Dir) ours() bool {
	for _, file := range []string{d.stateFile(), d.lockFile()} {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// Delete removes a directory that is a cluster's, and refuses any other.
func (d Dir) Delete() error {
	if _, err := os.Stat(string(d)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if !d.ours() {
		return fmt.Errorf("delete %s: no cluster.json in it: %w", d, ErrForeign)
	}
	if err := os.RemoveAll(string(d)); err != nil {
		return fmt.Errorf("delete cluster directory: %w", err)
	}
	return nil
}

func (d Dir) stateFile() string { return filepath.Join(string(d), "cluster.json") }
func (d Dir) lockFile() string  { return filepath.Join(string(d), "lock") }

// Kubeconfig is the administrator's.
func (d Dir) Kubeconfig() string { return filepath.Join(string(d), "kubeconfig") }

// PKI holds certificates, keys and the kubeconfigs of the cluster's own programs.
func (d Dir) PKI() string { return filepath.Join(string(d), "pki") }

// Etcd is etcd's data directory.
func (d Dir) Etcd() string { return filepath.Join(string(d), "etcd") }

// Config holds the configuration files written for the programs at every start.
func (d Dir) Config() string { return filepath.Join(string(d), "config") }

// Volumes holds what the default StorageClass provisions.
func (d Dir) Volumes() string { return filepath.Join(string(d), "volumes") }

// Logs holds one file per component.
func (d Dir) Logs() string { return filepath.Join(string(d), "logs") }

// Log is the file of one component.
func (d Dir) Log(component string) string { return filepath.Join(d.Logs(), component+".log") }

// Components is where the supervisor records what it runs.
func (d Dir) Components() string { return filepath.Join(string(d), "components.json") }
