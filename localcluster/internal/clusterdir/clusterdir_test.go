package clusterdir

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange func(t *testing.T, path string)
		want    error
	}{
		"a directory that does not exist is made": {
			arrange: func(*testing.T, string) {},
		},
		"an empty directory is taken": {
			arrange: func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) },
		},
		"a directory with a cluster in it is taken": {
			arrange: func(t *testing.T, path string) {
				must(t, os.Mkdir(path, 0o700))
				must(t, Dir(path).WriteState(State{Subnet: 20}))
				write(t, filepath.Join(path, "kubeconfig"))
			},
		},
		"a directory with other people's files is refused": {
			arrange: func(t *testing.T, path string) {
				must(t, os.Mkdir(path, 0o755))
				write(t, filepath.Join(path, "thesis.tex"))
			},
			want: ErrForeign,
		},
		"a file is refused": {
			arrange: func(t *testing.T, path string) { write(t, path) },
			want:    ErrForeign,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "deep")
			tc.arrange(t, path)
			if err := Dir(path).Create(); !errors.Is(err, tc.want) {
				t.Errorf("Create() = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestDeleteLeavesForeignDirectories(t *testing.T) {
	dir := Dir(t.TempDir())
	precious := filepath.Join(string(dir), "thesis.tex")
	write(t, precious)
	if err := dir.Delete(); !errors.Is(err, ErrForeign) {
		t.Errorf("Delete() = %v, want %v", err, ErrForeign)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestStateSurvivesWriting(t *testing.T) {
	dir := Dir(t.TempDir())
	if _, err := dir.ReadState(); !errors.Is(err, ErrNoCluster) {
		t.Fatalf("ReadState() of an empty directory = %v, want %v", err, ErrNoCluster)
	}
	want := State{Subnet: 77, Nodes: 3, GPUsPerNode: 8, APIServer: "https://127.0.0.1:21232", SupervisorPID: 12, Ready: true}
	must(t, dir.WriteState(want))
	got, err := dir.ReadState()
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestCheckDiskRefusesTooLittleSpace(t *testing.T) {
	dir := Dir(t.TempDir())
	must(t, dir.CheckDisk(0))
	if err := dir.CheckDisk(math.MaxUint64); !errors.Is(err, ErrDiskFull) {
		t.Errorf("CheckDisk(everything) = %v, want %v", err, ErrDiskFull)
	}
}

func TestSocketDirIsShortHoweverDeepTheClusterIs(t *testing.T) {
	for name, depth := range map[string]int{"shallow": 0, "deep": 20} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), strings.Repeat("/folder", depth))
			must(t, os.MkdirAll(path, 0o700))
			dir := Dir(path)
			sockets, err := dir.MakeSocketDir()
			must(t, err)
			if n := len(sockets) + socketNameReserve; n > maxSocketPath {
				t.Errorf("%s leaves no room for a name", sockets)
			}
			dir.RemoveSocketDir(sockets)
			if _, err := os.Stat(sockets); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left behind", sockets)
			}
		})
	}
}

func TestRemoveSocketDirTouchesNothingElse(t *testing.T) {
	other := t.TempDir()
	Dir(t.TempDir()).RemoveSocketDir(other)
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// A record lock is not seen by the process that holds it, so another one has to look.
const envLockDir = "CLUSTERDIR_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(envLockDir); path != "" {
		if _, err := Dir(path).Lock(); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("locked")
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockIsExclusiveAndDiesWithItsHolder(t *testing.T) {
	dir := Dir(t.TempDir())
	if pid, err := dir.Holder(); pid != 0 || err != nil {
		t.Fatalf("Holder() of a fresh directory = %d, %v", pid, err)
	}

	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), envLockDir+"="+string(dir))
	stdin, err := holder.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	if _, err := stdout.Read(make([]byte, len("locked"))); err != nil {
		t.Fatal(err)
	}

	if pid, err := dir.Holder(); pid != holder.Process.Pid || err != nil {
		t.Errorf("Holder() = %d, %v; want %d", pid, err, holder.Process.Pid)
	}
	if _, err := dir.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock() while held = %v, want %v", err, ErrLocked)
	}

	must(t, holder.Process.Kill())
	holder.Wait()
	lock, err := dir.Lock()
	must(t, err)
	must(t, lock.Close())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte("x"), 0o600))
}
