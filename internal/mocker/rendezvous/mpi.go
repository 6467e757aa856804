package rendezvous

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
)

// Job is what mpirun is asked to start, and where.
type Job struct {
	Processes int
	Hosts     []string
	Port      int
}

// ParseJob reads mpirun's own options.
func ParseJob(args []string) (Job, error) {
	parsed := commandline.NewArgs(args)
	job := Job{Port: SSHPort}
	var err error
	if job.Processes, err = parsed.Int(1, "-n", "-np", "--n", "--np"); err != nil {
		return job, err
	}
	if job.Processes < 1 {
		return job, fmt.Errorf("argument -n: %d processes cannot be started", job.Processes)
	}
	if list, ok := parsed.Value("-H", "--host", "-host"); ok {
		for host := range strings.SplitSeq(list, ",") {
			host, _, _ = strings.Cut(host, ":") // host:slots
			if host == "" || strings.ContainsAny(host, "$() ") {
				return job, fmt.Errorf("argument -H: %q in %q is no host that could be resolved", host, list)
			}
			job.Hosts = append(job.Hosts, host)
		}
	}
	if i := slices.Index(args, "plm_rsh_args"); i >= 0 && i+1 < len(args) {
		if job.Port, err = commandline.NewArgs(strings.Fields(args[i+1])).Int(SSHPort, "-p"); err != nil {
			return job, err
		}
	}
	return job, nil
}

// Span connects to every other host of a job, of which each has so many GPUs, 0
// if not known.
func Span(ctx context.Context, job Job, n Network, gpus int) (*Group, error) {
	if len(job.Hosts) == 0 {
		return nil, nil // all on this node
	}
	if gpus > 0 && job.Processes != len(job.Hosts)*gpus {
		return nil, fmt.Errorf("%d processes asked for, but %d hosts with %d GPUs each make %d", job.Processes, len(job.Hosts), gpus, len(job.Hosts)*gpus)
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	mirror, err := open(n, 0, nobody{})
	if err != nil {
		return nil, err
	}
	defer mirror.close()
	c := &cables{losses: make(chan error, 1)}
	for _, host := range job.Hosts {
		err := n.retry(ctx, "reach host "+host, func() error { return c.connect(ctx, n, mirror, host, job.Port) })
		if err != nil {
			c.close()
			return nil, err
		}
	}
	n.Log.Info("all hosts of the MPI job are there", "hosts", len(job.Hosts), "processes", job.Processes)
	return newGroup(c.losses, n.Settle, c.close), nil
}

// nobody is the roll of a hall that only its own opener enters.
type nobody struct{}

func (nobody) admit(h hello) error { return fmt.Errorf("node %s is not expected here", h.Node) }
func (nobody) leave(hello)         {}
func (nobody) missing() string     { return "nobody is expected" }

// cables are the connections to the other hosts.
type cables struct {
	conns   []net.Conn
	losses  chan error
	reading sync.WaitGroup
}

// connect makes one attempt to reach a host: by its SSH daemon or, where the
// host is this very node, which needs none, by the mirror.
func (c *cables) connect(ctx context.Context, n Network, mirror *hall, host string, port int) error {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	conn, err := n.Dial(ctx, "tcp", address)
	if err != nil {
		if looksBack(ctx, n, mirror, host) {
			return nil
		}
		return err
	}
	reader := bufio.NewReader(conn)
	if err := greeted(ctx, conn, reader); err != nil {
		_ = conn.Close()
		return fmt.Errorf("%s is no SSH server: %w", address, err)
	}
	c.conns = append(c.conns, conn)
	c.reading.Go(func() {
		_, _ = io.Copy(io.Discard, reader)
		select {
		case c.losses <- fmt.Errorf("lost host %s of the MPI job", host):
		default: // one loss is enough
		}
	})
	return nil
}

func greeted(ctx context.Context, conn net.Conn, reader *bufio.Reader) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(messageTimeout))
	line, err := reader.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "SSH-") {
		return fmt.Errorf("it says %q", line)
	}
	return conn.SetReadDeadline(time.Time{})
}

// looksBack reports whether a host's name leads to this node.
func looksBack(ctx context.Context, n Network, mirror *hall, host string) bool {
	_, port, err := net.SplitHostPort(mirror.listener.Addr().String())
	if err != nil {
		return false
	}
	s, err := enter(ctx, n, net.JoinHostPort(host, port), hello{Node: n.Node, Token: mirror.token})
	if err != nil {
		return false
	}
	s.close()
	return true
}

func (c *cables) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.reading.Wait()
}
