package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Logs beyond this size are moved aside when their program starts, so that a crash loop cannot fill the disk with
// more than two such files.
const maxLogSize = 16 << 20

// self is this very binary even if its file was replaced meanwhile: a restarted component must not change version.
const self = "/proc/self/exe"

// process is one run of a program.
type process struct {
	pid   int
	ended chan struct{} // closed when it has been reaped; err is set before
	err   error
}

// start runs the program once. The process dies with this one, whatever the reason.
func start(p Program, logFile string) (*process, error) {
	log, err := openLog(logFile)
	if err != nil {
		return nil, err
	}
	run := &process{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the *thread* that forked ends. Locking keeps this thread alive, and
		// ours, until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()

		cmd := &exec.Cmd{
			Path:   cmp.Or(p.Path, self),
			Args:   append([]string{p.Name}, p.Args...),
			Env:    p.Env,
			Dir:    p.Dir,
			Stdout: log,
			Stderr: log,
			SysProcAttr: &syscall.SysProcAttr{
				// Its own group, so that Ctrl-C in a terminal reaches the supervisor alone, which stops in order.
				Setpgid:   true,
				Pdeathsig: syscall.SIGKILL,
			},
		}
		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("start %s: %w", p.Name, err)
			return
		}
		run.pid = cmd.Process.Pid
		started <- nil
		run.err = cmd.Wait()
		close(run.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return run, nil
}

// stop ends the process: politely, then by force. It returns when the process is gone.
func (r *process) stop(grace time.Duration) {
	_ = syscall.Kill(r.pid, syscall.SIGTERM) // fails only if it has ended, which shows below
	select {
	case <-r.ended:
	case <-time.After(grace):
		_ = syscall.Kill(r.pid, syscall.SIGKILL)
		<-r.ended
	}
}

func (r *process) exit() string {
	if r.err == nil {
		return "exit status 0"
	}
	return r.err.Error()
}

func openLog(file string) (*os.File, error) {
	if info, err := os.Stat(file); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(file, file+".1"); err != nil {
			return nil, fmt.Errorf("move full log aside: %w", err)
		}
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look at log: %w", err)
	}
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return log, nil
}
