package rendezvous

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

func (p Place) hello(n Network) hello {
	return hello{Node: n.Node, First: p.First, Count: p.Count, Size: p.Size, Shape: p.Shape}
}

// follow finds the leader by its name and waits with it for the others.
func follow(ctx context.Context, p Place, n Network) (*Group, error) {
	s, err := find(ctx, n, p.Leader, p.hello(n))
	if err != nil {
		return nil, err
	}
	n.Log.Info("joined the group", "leader", p.Leader, "as", ranks(p.First, p.Count), "of", p.Size)
	if err := s.completion(ctx); err != nil {
		s.close()
		return nil, err
	}
	n.Log.Info("the group is complete", "ranks", p.Size)
	return s.group(n), nil
}

// find dials a leader until it answers.
func find(ctx context.Context, n Network, address string, who hello) (*seat, error) {
	var s *seat
	err := n.retry(ctx, "reach the leader "+address, func() (err error) {
		s, err = enter(ctx, n, address, who)
		return err
	})
	return s, err
}

// seat is a follower's connection to its leader.
type seat struct {
	conn   net.Conn
	reader *bufio.Reader
}

// enter makes one attempt to be welcome.
func enter(ctx context.Context, n Network, address string, who hello) (*seat, error) {
	conn, err := n.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &seat{conn: conn, reader: bufio.NewReader(conn)}
	answer, err := s.introduce(ctx, who)
	switch {
	case err != nil:
		err = fmt.Errorf("%s does not answer as a leader: %w", address, err)
	case answer.Refused != "":
		err = &Refused{Why: answer.Refused}
	case !answer.Welcome:
		err = fmt.Errorf("%s answers, but not as a leader", address)
	default:
		return s, nil
	}
	s.close()
	return nil, err
}

func (s *seat) introduce(ctx context.Context, who hello) (notice, error) {
	unhook := context.AfterFunc(ctx, s.close)
	defer unhook()
	var answer notice
	if err := send(s.conn, who); err != nil {
		return answer, err
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(messageTimeout))
	if err := receive(s.reader, &answer); err != nil {
		return answer, err
	}
	return answer, s.conn.SetReadDeadline(time.Time{})
}

// completion waits for the leader's word that everybody is there.
func (s *seat) completion(ctx context.Context) error {
	unhook := context.AfterFunc(ctx, s.close)
	defer unhook()
	var word notice
	switch err := receive(s.reader, &word); {
	case ctx.Err() != nil:
		return fmt.Errorf("wait for the group to be complete: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("lost the leader before the group was complete: %w", err)
	case word.Failed != "":
		return fmt.Errorf("the leader gave up: %s", word.Failed)
	case !word.Complete:
		return errors.New("the leader says neither that the group is complete nor why not")
	}
	return nil
}

// group watches the leader from now on.
func (s *seat) group(n Network) *Group {
	losses := make(chan error, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		var word notice
		for {
			if err := receive(s.reader, &word); err != nil {
				losses <- fmt.Errorf("lost the leader of the group: %w", err)
				return
			}
		}
	})
	return newGroup(losses, n.Settle, func() {
		s.close()
		reading.Wait()
	})
}

func (s *seat) close() { _ = s.conn.Close() }
