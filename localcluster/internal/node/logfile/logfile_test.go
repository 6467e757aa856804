package logfile

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, put func(*File)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "containers", "main", "0.log")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }
	put(f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRecords(t *testing.T) {
	const at = "2026-01-02T03:04:05.000000006Z "
	long := strings.Repeat("x", longestLine)
	for name, c := range map[string]struct {
		put  func(*File)
		want string
	}{
		"each line is a record": {
			func(f *File) { io.WriteString(f.Stdout(), "a\nb\n") },
			at + "stdout F a\n" + at + "stdout F b\n",
		},
		"a line that comes in pieces is one record": {
			func(f *File) { io.WriteString(f.Stdout(), "a"); io.WriteString(f.Stdout(), "b\n") },
			at + "stdout F ab\n",
		},
		"the streams do not mix": {
			func(f *File) { io.WriteString(f.Stdout(), "a"); io.WriteString(f.Stderr(), "e\n") },
			at + "stderr F e\n" + at + "stdout F a\n",
		},
		"a very long line is broken": {
			func(f *File) { io.WriteString(f.Stdout(), long+"y\n") },
			at + "stdout P " + long + "\n" + at + "stdout F y\n",
		},
		"an empty line is a record": {
			func(f *File) { io.WriteString(f.Stdout(), "\n") },
			at + "stdout F \n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := os.ReadFile(write(t, c.put))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTail(t *testing.T) {
	path := write(t, func(f *File) {
		for range 1000 {
			io.WriteString(f.Stdout(), "noise\n")
		}
		io.WriteString(f.Stderr(), "first cause\nlast words\n")
	})
	for name, c := range map[string]struct {
		lines, size int
		want        string
	}{
		"the last lines":          {2, 2048, "first cause\nlast words\n"},
		"no more than the bytes":  {80, 6, "words\n"},
		"prefixes are taken away": {1, 2048, "last words\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Tail(path, c.lines, c.size)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
