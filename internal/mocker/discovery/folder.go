package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Folder is a store for processes on one machine: each keeps a file and
// freshens it; a file nobody freshened for leaseTime belonged to a process that
// died. It stands in for a lease in etcd.
type Folder struct {
	dir  string
	file string
	log  *slog.Logger
	stop chan struct{}
	done sync.WaitGroup
	once sync.Once

	mu   sync.Mutex
	data *Metadata
}

const (
	leaseTime  = 10 * time.Second
	freshen    = leaseTime / 3
	lookPeriod = 100 * time.Millisecond
)

// NewFolder opens a folder as the member of the given name.
func NewFolder(dir, name string, log *slog.Logger) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open discovery folder: %w", err)
	}
	f := &Folder{dir: dir, file: filepath.Join(dir, name+".json"), log: log, stop: make(chan struct{})}
	f.done.Go(f.keepAlive)
	return f, nil
}

// Publish writes the member's file.
func (f *Folder) Publish(data Metadata) {
	data = data.Clone()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data = &data
	f.write()
}

// write replaces the file in one step, so that no reader sees half of it.
func (f *Folder) write() {
	body, err := json.Marshal(f.data)
	if err == nil {
		temporary := f.file + ".new"
		if err = os.WriteFile(temporary, body, 0o644); err == nil {
			err = os.Rename(temporary, f.file)
		}
	}
	if err != nil {
		f.log.Error("discovery file not written", "file", f.file, "error", err)
	}
}

func (f *Folder) keepAlive() {
	wait.Until(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.data != nil {
			f.write()
		}
	}, freshen, f.stop)
}

// Close removes the member's file.
func (f *Folder) Close(context.Context) {
	f.once.Do(func() { close(f.stop) })
	f.done.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data = nil
	if err := os.Remove(f.file); err != nil && !os.IsNotExist(err) {
		f.log.Error("discovery file not removed", "file", f.file, "error", err)
	}
}

// Watch looks at the folder several times a second.
func (f *Folder) Watch(ctx context.Context, tell func(Set)) {
	var last *Set
	wait.UntilWithContext(ctx, func(context.Context) {
		if set := f.look(time.Now()); last == nil || !reflect.DeepEqual(*last, set) {
			last = &set
			tell(set)
		}
	}, lookPeriod)
}

func (f *Folder) look(now time.Time) Set {
	names, err := filepath.Glob(filepath.Join(f.dir, "*.json"))
	if err != nil {
		f.log.Error("discovery folder not read", "folder", f.dir, "error", err)
	}
	var all []Metadata
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || now.Sub(info.ModTime()) > leaseTime {
			continue
		}
		body, err := os.ReadFile(name)
		if err != nil {
			continue // removed since
		}
		var m Metadata
		if err := json.Unmarshal(body, &m); err != nil {
			f.log.Warn("discovery file not understood", "file", name, "error", err)
			continue
		}
		all = append(all, m)
	}
	return Merge(all...)
}
