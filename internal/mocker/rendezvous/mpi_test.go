package rendezvous

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseJob(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want Job
		why  string
	}{
		"processes, hosts and the port of plm_rsh_args": {
			args: "--oversubscribe -n 8 -H a.x,b.x --mca pml ob1 --mca plm_rsh_args|-p 2200 -o StrictHostKeyChecking=no|-x HOME",
			want: Job{Processes: 8, Hosts: []string{"a.x", "b.x"}, Port: 2200},
		},
		"the other spellings":             {args: "-np 2 --host a:1,b:1", want: Job{Processes: 2, Hosts: []string{"a", "b"}, Port: SSHPort}},
		"no host is this node":            {args: "-n 4", want: Job{Processes: 4, Port: SSHPort}},
		"a number that is none":           {args: "-n $N", why: `argument -n/-np/--n/--np: invalid int value: "$N"`},
		"no process":                      {args: "-n 0", why: "argument -n: 0 processes cannot be started"},
		"a host that was not expanded":    {args: "-n 2 -H $LWS_LEADER_ADDRESS,b", why: `argument -H: "$LWS_LEADER_ADDRESS" in "$LWS_LEADER_ADDRESS,b" is no host that could be resolved`},
		"a host that expanded to nothing": {args: "-n 2 -H ,b", why: `argument -H: "" in ",b" is no host that could be resolved`},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			for i, part := range strings.Split(c.args, "|") { // the middle one is a word
				if i == 1 {
					args = append(args, part)
				} else {
					args = append(args, strings.Fields(part)...)
				}
			}
			job, err := ParseJob(args)
			if c.why != "" {
				if err == nil || err.Error() != c.why {
					t.Errorf("error %v, want %s", err, c.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, job); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// serveSSH runs a node's daemon until the returned function ends it.
func serveSSH(t *testing.T, n Network, port int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ServeSSH(ctx, n, port) }()
	var err error
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err = <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func TestAJobSpansItsHosts(t *testing.T) {
	t.Run("once every other host has an SSH server", func(t *testing.T) {
		w := newWorld(t)
		leader, worker := w.node(0), w.node(1)
		type span struct {
			group *Group
			err   error
		}
		answer := make(chan span, 1)
		go func() {
			g, err := Span(t.Context(), Job{Processes: 8, Hosts: []string{"node-0", "node-1"}, Port: w.port}, leader, 4)
			answer <- span{g, err}
		}()
		eventually(t, "mpirun says whom it waits for", func() bool {
			return strings.Contains(w.journal.String(), "reach host node-1")
		})
		stop := serveSSH(t, worker, w.port)
		got := <-answer
		if got.err != nil {
			t.Fatal(got.err)
		}
		t.Cleanup(got.group.Close)
		stop()
		lost(t, got.group, "lost host node-1 of the MPI job")
	})
	t.Run("without hosts there is nobody to meet", func(t *testing.T) {
		w := newWorld(t)
		group, err := Span(t.Context(), Job{Processes: 8}, w.node(0), 4)
		if group != nil || err != nil {
			t.Errorf("%v, %v", group, err)
		}
	})
	for name, c := range map[string]struct {
		job  Job
		gpus int
		why  string
	}{
		"a host without a name":        {Job{Processes: 2, Hosts: []string{"node-0", "ghost"}}, 1, "reach host ghost: not within 1s: lookup ghost: no such host"},
		"a host without an SSH server": {Job{Processes: 2, Hosts: []string{"node-0", "node-1"}}, 1, "reach host node-1: not within 1s"},
		"more processes than GPUs":     {Job{Processes: 9, Hosts: []string{"node-0", "node-1"}}, 4, "9 processes asked for, but 2 hosts with 4 GPUs each make 8"},
		"fewer processes than GPUs":    {Job{Processes: 4, Hosts: []string{"node-0", "node-1"}}, 4, "4 processes asked for, but 2 hosts with 4 GPUs each make 8"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.node(0)
			w.node(1)
			n.Timeout = time.Second
			c.job.Port = w.port
			if _, err := Span(t.Context(), c.job, n, c.gpus); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("error %v, want %q", err, c.why)
			}
		})
	}
}

func TestAHostResolvesWhetherOrNotSomebodyListens(t *testing.T) {
	w := newWorld(t)
	n := w.node(0)
	if !n.Resolves(t.Context(), "node-0") {
		t.Error("a known host does not resolve")
	}
	if n.Resolves(t.Context(), "ghost") {
		t.Error("an unknown host resolves")
	}
}
