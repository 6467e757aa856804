package rendezvous

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// Network is how a node reaches the others and is reached.
type Network struct {
	Dial wire.DialFunc
	// Host is the address to listen on, Node this node's name in messages.
	Host, Node string
	// Timeout bounds the wait for a complete group.
	Timeout time.Duration
	// Retry is the pause between two attempts to reach a node.
	Retry time.Duration
	// Settle is how long a lost node is not held against the group: nodes of a
	// group are stopped together, and the last one to hear of it must not take
	// the others' leaving for a crash.
	Settle time.Duration
	Log    *slog.Logger
}

// NewNetwork reads a container's environment. MOCKER_RENDEZVOUS_TIMEOUT bounds
// the wait for a complete group (300 s).
func NewNetwork(env podenv.Env, log *slog.Logger) (Network, error) {
	timeout, err := env.Duration("MOCKER_RENDEZVOUS_TIMEOUT", 300*time.Second)
	if err != nil {
		return Network{}, err
	}
	if timeout <= 0 {
		return Network{}, fmt.Errorf("MOCKER_RENDEZVOUS_TIMEOUT must be greater than 0")
	}
	dial, err := wire.NewDialer(env["DYNAMO_FORWARD_PROXY"])
	if err != nil {
		return Network{}, err
	}
	return Network{
		Dial: own(env, dial), Host: env.ListenHost(), Node: env.String("node", "POD_NAME", "HOSTNAME"),
		Timeout: timeout, Retry: 500 * time.Millisecond, Settle: 2 * time.Second, Log: log,
	}, nil
}

// own leads to the pod's own processes, which listen on its address, whatever they
// call themselves.
func own(env podenv.Env, dial wire.DialFunc) wire.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err == nil && slices.Contains([]string{"localhost", "127.0.0.1", "0.0.0.0", "::1", "::"}, host) {
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(cmp.Or(env.ListenHost(), "127.0.0.1"), port))
		}
		return dial(ctx, network, address)
	}
}

func (n Network) listen(port int) (net.Listener, error) {
	address := net.JoinHostPort(n.Host, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the group's nodes on %s: %w", address, err)
	}
	return listener, nil
}

func (n Network) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, n.Timeout, fmt.Errorf("not within %s", n.Timeout))
}

// Resolves reports whether a host has an address. The proxy knows names only
// together with a port; that nobody listens on it is no reason to doubt the name.
func (n Network) Resolves(ctx context.Context, host string) bool {
	conn, err := n.Dial(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(SSHPort)))
	if err == nil {
		_ = conn.Close()
		return true
	}
	return ctx.Err() == nil && !wire.NameUnknown(err)
}

// Await waits until somebody listens at an address.
func (n Network) Await(ctx context.Context, address string) error {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	return n.retry(ctx, "reach the leader "+address, func() error {
		conn, err := n.Dial(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

// retry calls attempt until it succeeds, fails for good, or ctx ends. Why it
// still waits is logged when the reason changes.
func (n Network) retry(ctx context.Context, what string, attempt func() error) error {
	why := "" // the last reason that is not the end of ctx itself
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		if refused, ok := asRefused(err); ok {
			return fmt.Errorf("%s: %w", what, refused)
		}
		if reason := err.Error(); reason != why && ctx.Err() == nil {
			n.Log.Info("waiting for a node of the group", "to", what, "because", reason)
			why = reason
		}
		timer := time.NewTimer(n.Retry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w: %s", what, context.Cause(ctx), cmp.Or(why, err.Error()))
		}
	}
}
