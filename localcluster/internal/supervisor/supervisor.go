package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
)

// Supervisor runs programs until it is told to stop them.
type Supervisor struct {
	dir clusterdir.Dir
	log *slog.Logger

	mu      sync.Mutex
	records []Record
	kept    []*keeper // in starting order
}

// New returns a supervisor that writes logs and records into the cluster's directory.
func New(dir clusterdir.Dir, log io.Writer) *Supervisor {
	return &Supervisor{dir: dir, log: slog.New(slog.NewTextHandler(log, nil))}
}

// keeper is the loop that restarts one program:
//
//	running --exits--> pausing --pause over--> running
//	   any state --stop--> gone
type keeper struct {
	program Program
	index   int // of its record
	stop    chan struct{}
	done    chan struct{}
}

// Start runs the program and keeps it running. Only a program that cannot be started at all is an error.
func (s *Supervisor) Start(p Program) error {
	run, err := start(p, s.dir.Log(p.Name))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &keeper{program: p, index: len(s.records), stop: make(chan struct{}), done: make(chan struct{})}
	s.records = append(s.records, Record{Name: p.Name, PID: run.pid, Since: time.Now()})
	s.kept = append(s.kept, k)
	s.publish()
	go s.keep(k, run)
	return nil
}

func (s *Supervisor) keep(k *keeper, run *process) {
	defer close(k.done)
	var pause time.Duration
	since := time.Now()
	for {
		var failure string
		if run != nil {
			select {
			case <-run.ended:
				failure = run.exit()
			case <-k.stop:
				run.stop(k.program.Grace)
				return
			}
		}
		pause = nextPause(pause, time.Since(since))
		s.log.Warn("component ended", "component", k.program.Name, "exit", failure, "restartIn", pause.String())
		s.update(k.index, func(r *Record) { r.PID, r.LastExit, r.Since = 0, failure, time.Now() })
		select {
		case <-time.After(pause):
		case <-k.stop:
			return
		}

		since = time.Now()
		var err error
		if run, err = start(k.program, s.dir.Log(k.program.Name)); err != nil {
			s.log.Error("component cannot be restarted", "component", k.program.Name, "error", err.Error())
			run = nil
			continue
		}
		s.log.Info("component restarted", "component", k.program.Name, "pid", run.pid)
		s.update(k.index, func(r *Record) { r.PID, r.Since = run.pid, since; r.Restarts++ })
	}
}

// Failure returns how a program ended last, and how often that has happened.
func (s *Supervisor) Failure(name string) (exit string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.Name == name {
			times = r.Restarts
			if r.PID == 0 {
				times++
			}
			return r.LastExit, times
		}
	}
	return "", 0
}

// Stop ends all programs, the last started first: each is stopped while what it depends on still runs.
func (s *Supervisor) Stop() {
	s.mu.Lock()
	kept := s.kept
	s.kept = nil
	s.mu.Unlock()
	for _, k := range slices.Backward(kept) {
		close(k.stop)
		<-k.done
		s.update(k.index, func(r *Record) { r.PID = 0 })
	}
}

func (s *Supervisor) update(index int, change func(*Record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.records[index])
	s.publish()
}

// publish is called with the lock held. Records serve those who look on; failing to write them stops nothing.
func (s *Supervisor) publish() {
	if err := clusterdir.WriteJSON(s.dir.Components(), s.records); err != nil {
		s.log.Error("cannot record components", "error", err.Error())
	}
}

// ReadRecords returns what the last supervisor of the directory wrote.
func ReadRecords(dir clusterdir.Dir) ([]Record, error) {
	data, err := os.ReadFile(dir.Components())
	if err != nil {
		return nil, fmt.Errorf("read components: %w", err)
	}
	var records []Record
	if err := json.Unmarshal(data, &records); err != nil {
		return nil, fmt.Errorf("parse %s: %w", dir.Components(), err)
	}
	return records, nil
}

// AwaitEnd waits until the programs of a killed supervisor, which the kernel kills too, are gone.
func AwaitEnd(ctx context.Context, dir clusterdir.Dir) error {
	records, err := ReadRecords(dir)
	if err != nil {
		return err
	}
	for _, r := range records {
		for r.PID != 0 && runs(r.PID) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for %s (%d) to end: %w", r.Name, r.PID, ctx.Err())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// runs tells whether a process is there. Whoever cannot be signalled is gone, or its number is somebody else's by now;
// whoever has ended stays as a zombie where nobody adopts orphans.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
