package rendezvous

import (
	"sync"
	"time"
)

// Group is a node's hold on the others of a complete group.
type Group struct {
	lost   chan error
	closed chan struct{}
	end    func()
	watch  sync.WaitGroup
	once   sync.Once
}

// newGroup passes a loss on after the time to settle. end releases whatever
// feeds losses.
func newGroup(losses <-chan error, settle time.Duration, end func()) *Group {
	g := &Group{lost: make(chan error, 1), closed: make(chan struct{}), end: end}
	g.watch.Go(func() {
		var loss error
		select {
		case loss = <-losses:
		case <-g.closed:
			return
		}
		timer := time.NewTimer(settle)
		defer timer.Stop()
		select {
		case <-timer.C:
			g.lost <- loss
		case <-g.closed:
		}
	})
	return g
}

// Lost tells, once, that the group has broken. A nil group never does.
func (g *Group) Lost() <-chan error {
	if g == nil {
		return nil
	}
	return g.lost
}

// Close leaves the group, which is then broken for the others. It returns when
// nothing of it is left.
func (g *Group) Close() {
	if g == nil {
		return
	}
	g.once.Do(func() {
		close(g.closed)
		g.end()
		g.watch.Wait()
	})
}
