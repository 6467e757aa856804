package process

import (
	"sync"
	"syscall"
	"time"
)

// standin is a Process without a program.
type standin struct {
	once   sync.Once
	done   chan struct{}
	code   int
	signal func(*standin, syscall.Signal)
}

func newStandin(signal func(*standin, syscall.Signal)) *standin {
	return &standin{done: make(chan struct{}), signal: signal}
}

func (p *standin) end(code int) {
	p.once.Do(func() {
		p.code = code
		close(p.done)
	})
}

func (p *standin) Signal(sig syscall.Signal) { p.signal(p, sig) }
func (p *standin) Done() <-chan struct{}     { return p.done }
func (p *standin) ExitCode() int             { return p.code }

// Idle plays a container that only has to be there: it ends when told to, well
// if it was asked and with the usual code if it was killed.
func Idle() Process {
	return newStandin(func(p *standin, sig syscall.Signal) {
		if sig == syscall.SIGTERM {
			p.end(0)
			return
		}
		p.end(128 + int(sig))
	})
}

// Ended plays a container that has nothing to do.
func Ended() Process {
	p := newStandin(func(*standin, syscall.Signal) {})
	p.end(0)
	return p
}

// Later plays a container that is slow to start: the process begins after the
// delay, and until then a signal ends the wait.
func Later(delay time.Duration, launch func() (Process, error)) Process {
	signals := make(chan syscall.Signal, 8)
	p := newStandin(func(_ *standin, sig syscall.Signal) {
		// A full queue already holds what matters.
		select {
		case signals <- sig:
		default:
		}
	})
	go func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case sig := <-signals:
			p.end(128 + int(sig))
			return
		case <-timer.C:
		}
		played, err := launch()
		if err != nil {
			p.end(128)
			return
		}
		for {
			select {
			case sig := <-signals:
				played.Signal(sig)
			case <-played.Done():
				p.end(played.ExitCode())
				return
			}
		}
	}()
	return p
}
