package rendezvous

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// roll decides who belongs to a group and when it is complete. The hall calls
// it under its lock.
type roll interface {
	admit(hello) error
	leave(hello)
	// missing says what the group still lacks; empty when it is complete.
	missing() string
}

// hall is the leader's side: a listener, and a seat for every node that came.
//
//	gathering --missing nothing--> complete --a node is lost--> broken
//
// While gathering, nodes may come and go; a complete group stands or falls as
// one. A broken one hangs up on whoever calls, who thus goes on calling until
// the leader has started again.
type hall struct {
	listener net.Listener
	token    string
	log      *slog.Logger
	roll     roll

	mu       sync.Mutex
	conns    map[net.Conn]*hello // nil until it has said who it is
	complete chan struct{}       // closed once
	isFull   bool
	broken   bool
	closed   bool
	refusal  error      // the last one
	lost     chan error // holds the first loss
	handlers sync.WaitGroup
}

func open(n Network, port int, r roll) (*hall, error) {
	listener, err := n.listen(port)
	if err != nil {
		return nil, err
	}
	h := &hall{
		listener: listener, token: rand.Text(), log: n.Log, roll: r,
		conns: map[net.Conn]*hello{}, complete: make(chan struct{}), lost: make(chan error, 1),
	}
	h.handlers.Go(h.accept)
	return h, nil
}

func (h *hall) accept() {
	for {
		conn, err := h.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.log.Warn("accept a node of the group", "error", err)
			time.Sleep(10 * time.Millisecond) // out of file descriptors: they come back
			continue
		}
		h.mu.Lock()
		if h.closed {
			_ = conn.Close()
		} else {
			h.conns[conn] = nil
			h.handlers.Go(func() { h.attend(conn) })
		}
		h.mu.Unlock()
	}
}

// attend hears one node out and keeps its seat until it is gone.
func (h *hall) attend(conn net.Conn) {
	defer h.leave(conn)
	var guest hello
	reader := bufio.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(messageTimeout))
	if err := receive(reader, &guest); err != nil {
		return // a probe
	}
	if guest.Token == h.token {
		_ = send(conn, notice{Welcome: true})
		return
	}
	switch err := h.enter(conn, guest); {
	case errors.Is(err, errBroken):
		return
	case err != nil:
		h.log.Error("refused a node of the group", "node", guest.Node, "error", err)
		_ = send(conn, notice{Refused: err.Error()})
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, reader) // a node has nothing more to say; this ends with it
}

// errBroken is no refusal: the node is right, and early for the next group.
var errBroken = errors.New("the group is broken")

func (h *hall) enter(conn net.Conn, guest hello) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken {
		return errBroken
	}
	if err := h.roll.admit(guest); err != nil {
		h.refusal = err
		return err
	}
	h.conns[conn] = &guest
	_ = send(conn, notice{Welcome: true})
	h.log.Info("a node joined the group", "node", guest.Node, "missing", h.roll.missing())
	h.check()
	return nil
}

// check completes the group if it can be; the lock is held.
func (h *hall) check() {
	if h.isFull || h.roll.missing() != "" {
		return
	}
	h.isFull = true
	close(h.complete)
	h.tell(notice{Complete: true})
}

func (h *hall) tell(n notice) {
	for conn, guest := range h.conns {
		if guest != nil {
			_ = send(conn, n)
		}
	}
}

func (h *hall) leave(conn net.Conn) {
	_ = conn.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	guest := h.conns[conn]
	delete(h.conns, conn)
	if guest == nil || h.closed {
		return
	}
	if !h.isFull {
		h.roll.leave(*guest)
		h.log.Warn("a node left before the group was complete", "node", guest.Node)
		return
	}
	h.broken = true
	select {
	case h.lost <- fmt.Errorf("lost node %s of the group", guest.Node):
	default: // one loss is enough
	}
}

// wait blocks until the group is complete.
func (h *hall) wait(ctx context.Context) error {
	h.mu.Lock()
	h.check()
	h.mu.Unlock()
	select {
	case <-h.complete:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isFull {
		return nil
	}
	err := fmt.Errorf("group is not complete: %w: %s", context.Cause(ctx), h.roll.missing())
	if h.refusal != nil {
		err = fmt.Errorf("%w; the last node refused: %w", err, h.refusal)
	}
	h.tell(notice{Failed: err.Error()})
	return err
}

// close sends everybody away and returns when they are gone.
func (h *hall) close() {
	h.mu.Lock()
	h.closed = true
	_ = h.listener.Close()
	for conn := range h.conns {
		_ = conn.Close()
	}
	h.mu.Unlock()
	h.handlers.Wait()
}
