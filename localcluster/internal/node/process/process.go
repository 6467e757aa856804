// Package process runs the programs that play containers.
//
// Every process is the leader of a group of its own, so that a signal reaches
// all it started, and dies with the agent: nothing outlives it, however the
// agent ends. The package knows no pods, and adopts nothing from before: after
// a restart of the agent every container starts anew.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec is a program to run.
type Spec struct {
	Path           string
	Args           []string // without the program's name
	Env            []string
	Dir            string
	Stdout, Stderr io.Writer
}

// Process is something that runs in a container's stead.
type Process interface {
	// Signal reaches the whole group; after the end it does nothing.
	Signal(syscall.Signal)
	// Done is closed at the end.
	Done() <-chan struct{}
	// ExitCode is valid once Done is closed: what a shell would show, so 128
	// and the signal's number for a process that was killed.
	ExitCode() int
}

// Spawner starts processes.
//
// The kernel sends a child's death signal when the *thread* that made it ends,
// and Go ends threads at will. So one goroutine is locked to a thread that lives
// as long as the agent, and that thread makes all children.
type Spawner struct {
	requests chan func()
}

// NewSpawner starts the thread. There is no way to stop it other than ending
// the program: its children would die.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for start := range s.requests {
			start()
		}
	}()
	return s
}

// Launch starts a program.
func (s *Spawner) Launch(spec Spec) (Process, error) {
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = spec.Env, spec.Dir, spec.Stdout, spec.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// A stray descendant may hold the output open; its leader's end is ours. A busy
	// machine must have the time to read what the leader said last.
	cmd.WaitDelay = 10 * time.Second

	started := make(chan error)
	s.requests <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	p := &child{pid: cmd.Process.Pid, done: make(chan struct{})}
	go p.wait(cmd)
	return p, nil
}

type child struct {
	pid  int
	done chan struct{}
	code int

	mu    sync.Mutex
	ended bool
}

func (p *child) wait(cmd *exec.Cmd) {
	err := cmd.Wait()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	// The group may have members left. Its number cannot have been given to
	// others while they live, and if none live the signal goes nowhere.
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.code = exitCode(cmd.ProcessState, err)
	close(p.done)
}

func (p *child) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = syscall.Kill(-p.pid, sig)
	}
}

func (p *child) Done() <-chan struct{} { return p.done }
func (p *child) ExitCode() int         { return p.code }

func exitCode(state *os.ProcessState, err error) int {
	if state == nil {
		return 128
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signal() >= 0 {
		return 128 + int(ws.Signal())
	}
	if code := state.ExitCode(); code != 0 || err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return code
	}
	return 128
}
