package clusterdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestADirectoryThatExistsIsClosedToOthers gives a directory that everybody may read, with credentials in it, as one
// that an earlier version or `mkdir` left.
func TestADirectoryThatExistsIsClosedToOthers(t *testing.T) {
	for rule, c := range map[string]struct{ files, folders []string }{
		"an empty one":     {},
		"one of a cluster": {[]string{"cluster.json", "kubeconfig", "pki/admin.key", "pki/tokens/one", "config/encryption.yaml"}, []string{"pki", "pki/tokens", "config"}},
	} {
		t.Run(rule, func(t *testing.T) {
			d := Dir(t.TempDir())
			for _, name := range c.files {
				path := filepath.Join(string(d), name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("{}"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(string(d), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := d.Create(); err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Concat([]string{"."}, c.files, c.folders) {
				info, err := os.Stat(filepath.Join(string(d), name))
				if err != nil {
					t.Fatal(err)
				}
				if mode := info.Mode().Perm(); mode&0o077 != 0 || mode&0o600 != 0o600 {
					t.Errorf("%s has mode %o", name, mode)
				}
			}
		})
	}
}

// TestADirectoryOfAnotherUserIsRefused needs to be root, to give something away.
func TestADirectoryOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to somebody else")
	}
	const nobody = 65534
	for _, name := range []string{".", "kubeconfig"} {
		d := Dir(t.TempDir())
		for _, file := range []string{"cluster.json", "kubeconfig"} {
			if err := os.WriteFile(filepath.Join(string(d), file), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(filepath.Join(string(d), name), nobody, nobody); err != nil {
			t.Fatal(err)
		}
		if err := d.Create(); !errors.Is(err, ErrForeign) {
			t.Errorf("%s of another user: %v", name, err)
		}
	}
}
