package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (w *world) place(first, count, size int) Place {
	return Place{Leader: w.leader(), First: first, Count: count, Size: size, Shape: "m"}
}

func TestAGroupIsCompleteWhenEveryRankIsThere(t *testing.T) {
	for name, firsts := range map[string][]int{
		"one rank a node":         {0, 1, 2, 3},
		"two ranks a node":        {0, 2, 4},
		"followers in any order":  {0, 3, 1, 2},
		"a leader without others": {0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			count := 1
			if strings.HasPrefix(name, "two") {
				count = 2
			}
			size := count * len(firsts)
			var answers []<-chan result
			for i, first := range firsts {
				answers = append(answers, w.join(t.Context(), w.node(i), w.place(first, count, size)))
			}
			for _, answer := range answers {
				w.joined(answer)
			}
		})
	}
}

func TestFollowersWaitForALeaderThatIsNotThereYet(t *testing.T) {
	w := newWorld(t)
	leader, follower := w.node(0), w.node(1)
	answer := w.join(t.Context(), follower, w.place(1, 1, 2))
	eventually(t, "the follower says what it waits for", func() bool {
		return strings.Contains(w.journal.String(), "connection refused")
	})
	w.joined(w.join(t.Context(), leader, w.place(0, 1, 2)))
	w.joined(answer)
}

func TestTheLeaderRefusesWhoIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		wrong Place
		why   string
	}{
		"a rank that is taken":           {Place{First: 1, Count: 1, Size: 4, Shape: "m"}, "rank 1 is taken by node node-1"},
		"ranks that overlap":             {Place{First: 1, Count: 2, Size: 4, Shape: "m"}, "ranks 1 to 2, but rank 1 is taken by node node-1"},
		"another number of nodes":        {Place{First: 2, Count: 1, Size: 3, Shape: "m"}, "counts 3 ranks in the group, the leader 4"},
		"another model":                  {Place{First: 2, Count: 1, Size: 4, Shape: "n"}, "runs n, the leader m"},
		"a second leader":                {Place{First: 0, Count: 1, Size: 4, Shape: "m"}, "rank 0 is taken by node node-0"},
		"a rank the group does not have": {Place{First: 4, Count: 1, Size: 5, Shape: "m"}, "counts 5 ranks"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ctx, cancel := context.WithCancel(t.Context())
			nodes := []Network{w.node(0), w.node(1), w.node(2)}
			leader := w.join(ctx, nodes[0], w.place(0, 1, 4))
			first := w.join(t.Context(), nodes[1], w.place(1, 1, 4))
			eventually(t, "rank 1 is there", func() bool { return strings.Contains(w.journal.String(), "joined the group") })
			c.wrong.Leader = w.leader()
			w.fails(w.join(t.Context(), nodes[2], c.wrong), c.why)
			if log := w.journal.String(); !strings.Contains(log, "refused a node of the group") || !strings.Contains(log, c.why) {
				t.Errorf("the leader does not tell %q:\n%s", c.why, log)
			}
			cancel()
			w.fails(leader, "nobody has brought ranks 2 to 3; the last node refused: node node-2") // it went on waiting for the right ones
			w.fails(first, "the leader gave up")
		})
	}
}

func TestAPlaceIsRefusedBeforeAnythingIsDialled(t *testing.T) {
	for name, c := range map[string]struct {
		place Place
		why   string
	}{
		"rank out of range":      {Place{Leader: "l:1", First: 2, Count: 1, Size: 2}, "rank 2 out of range: the group has ranks 0 to 1"},
		"negative rank":          {Place{Leader: "l:1", First: -1, Count: 1, Size: 2}, "rank -1 out of range: the group has ranks 0 to 1"},
		"too many local ranks":   {Place{Leader: "l:1", First: 4, Count: 8, Size: 8}, "ranks 4 to 11 out of range: the group has ranks 0 to 7"},
		"no local rank":          {Place{Leader: "l:1", First: 0, Count: 0, Size: 8}, "ranks 0 to -1 out of range: the group has ranks 0 to 7"},
		"no leader":              {Place{First: 0, Count: 1, Size: 2}, `leader address "" is not host:port`},
		"no port":                {Place{Leader: "l", First: 0, Count: 1, Size: 2}, `leader address "l" is not host:port`},
		"no host":                {Place{Leader: ":29500", First: 0, Count: 1, Size: 2}, `leader address ":29500" has no host that could be resolved`},
		"a port with a name":     {Place{Leader: "l:rdv", First: 0, Count: 1, Size: 2}, `leader address "l:rdv" has no port number`},
		"an unexpanded variable": {Place{Leader: "$LWS_LEADER_ADDRESS:29500", First: 0, Count: 1, Size: 2}, `leader address "$LWS_LEADER_ADDRESS:29500" has no host that could be resolved`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Meet(t.Context(), c.place, Network{Timeout: time.Second})
			if diff := cmp.Diff(c.why, fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWaitingEndsInWordsThatNameTheMissing(t *testing.T) {
	t.Run("the leader names the ranks, also to those that came", func(t *testing.T) {
		w := newWorld(t)
		leader, follower := w.node(0), w.node(1)
		leader.Timeout = 3 * time.Second
		early := w.join(t.Context(), follower, w.place(2, 2, 8))
		w.fails(w.join(t.Context(), leader, w.place(0, 1, 8)), "not within 3s: nobody has brought rank 1 and ranks 4 to 7")
		w.fails(early, "the leader gave up: group is not complete")
	})
	t.Run("a follower names the leader that cannot be resolved", func(t *testing.T) {
		w := newWorld(t)
		n := w.node(1)
		n.Timeout = time.Second
		w.fails(w.join(t.Context(), n, w.place(1, 1, 2)), "reach the leader node-0:"+fmt.Sprint(w.port)+": not within 1s: lookup node-0: no such host")
	})
	t.Run("a leader must be found under its own name", func(t *testing.T) {
		w := newWorld(t)
		n := w.node(0)
		n.Timeout = time.Second
		w.names.Delete("node-0")
		w.fails(w.join(t.Context(), n, w.place(0, 1, 1)), "reach myself as the leader")
	})
}

func TestAGroupStandsOrFallsAsOne(t *testing.T) {
	whole := func(t *testing.T) (leader, follower, other *Group) {
		w := newWorld(t)
		nodes := []Network{w.node(0), w.node(1), w.node(2)}
		var answers []<-chan result
		for i, n := range nodes {
			answers = append(answers, w.join(t.Context(), n, w.place(i, 1, 3)))
		}
		return w.joined(answers[0]), w.joined(answers[1]), w.joined(answers[2])
	}
	t.Run("a lost follower ends the leader, and that the others", func(t *testing.T) {
		leader, follower, other := whole(t)
		follower.Close()
		lost(t, leader, "lost node node-1 of the group")
		leader.Close()
		lost(t, other, "lost the leader of the group")
	})
	t.Run("a lost leader ends its followers", func(t *testing.T) {
		leader, follower, other := whole(t)
		leader.Close()
		lost(t, follower, "lost the leader of the group")
		lost(t, other, "lost the leader of the group")
	})
	t.Run("leaving is not a loss to oneself", func(t *testing.T) {
		leader, _, _ := whole(t)
		leader.Close()
		leader.Close()
		select {
		case err := <-leader.Lost():
			t.Errorf("a closed group says %v", err)
		default:
		}
	})
}

func TestANodeThatRestartsBeforeItsLeaderWaitsForIt(t *testing.T) {
	w := newWorld(t)
	nodes := []Network{w.node(0), w.node(1)}
	nodes[0].Settle = time.Hour // the leader has seen the loss, but is still there
	leading := w.join(t.Context(), nodes[0], w.place(0, 1, 2))
	w.joined(w.join(t.Context(), nodes[1], w.place(1, 1, 2))).Close()
	leader := w.joined(leading)
	eventually(t, "the leader hangs up", func() bool {
		_, err := enter(t.Context(), nodes[1], w.leader(), w.place(1, 1, 2).hello(nodes[1]))
		return errors.Is(err, io.EOF)
	})
	again := w.join(t.Context(), nodes[1], w.place(1, 1, 2))
	leader.Close()
	leading = w.join(t.Context(), nodes[0], w.place(0, 1, 2))
	w.joined(again)
	w.joined(leading)
}

func TestBeforeTheGroupIsCompleteANodeMayComeBack(t *testing.T) {
	w := newWorld(t)
	nodes := []Network{w.node(0), w.node(1), w.node(2)}
	leader := w.join(t.Context(), nodes[0], w.place(0, 1, 3))
	ctx, cancel := context.WithCancel(t.Context())
	early := w.join(ctx, nodes[1], w.place(1, 1, 3))
	eventually(t, "rank 1 is there", func() bool { return strings.Contains(w.journal.String(), "joined the group") })
	cancel()
	w.fails(early, "context canceled")
	eventually(t, "the leader has seen it go", func() bool {
		return strings.Contains(w.journal.String(), "left before the group was complete")
	})
	again := w.join(t.Context(), nodes[1], w.place(1, 1, 3))
	w.joined(w.join(t.Context(), nodes[2], w.place(2, 1, 3)))
	w.joined(again)
	w.joined(leader)
}

func TestProbesOfTheLeadersPortAreNobody(t *testing.T) {
	w := newWorld(t)
	nodes := []Network{w.node(0), w.node(1)}
	leader := w.join(t.Context(), nodes[0], w.place(0, 1, 2))
	eventually(t, "the leader hangs up on who makes no sense", func() bool {
		conn, err := w.dial(t.Context(), "tcp", w.leader())
		if err != nil {
			return false
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\n\r\n")
		answer, err := io.ReadAll(conn)
		return len(answer) == 0 && (err == nil || errors.Is(err, syscall.ECONNRESET))
	})
	w.joined(w.join(t.Context(), nodes[1], w.place(1, 1, 2)))
	w.joined(leader)
}
