package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// SSHPort is where the nodes of an MPI job listen.
const SSHPort = 2222

// banner is the first line of an SSH server.
const banner = "SSH-2.0-dynamo-mocker\r\n"

// ServeSSH plays the SSH daemon of an MPI node until ctx ends: it greets and
// stays connected. It runs nothing, so it asks for no key.
func ServeSSH(ctx context.Context, n Network, port int) error {
	listener, err := n.listen(port)
	if err != nil {
		return err
	}
	n.Log.Info("sshd listening", "address", listener.Addr().String())
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("accept SSH connection: %w", err)
		}
		all.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			defer func() { _ = conn.Close() }()
			if _, err := io.WriteString(conn, banner); err == nil {
				_, _ = io.Copy(io.Discard, conn) // ends with the caller
			}
		})
	}
}
