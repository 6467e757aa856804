// Package proxy is the cluster's network: a forward proxy that turns the addresses and names of Kubernetes, which exist
// on paper only, into the loopback addresses where processes listen. It never connects to anything but loopback.
//
//	client --CONNECT svc.ns:80-----> proxy --dial 127.k.a.b:8000--> process of a ready pod
//	kube-apiserver --Unix socket--/
//
// It keeps no connection of its own between requests and does not look into what it carries.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
)

// Config says whom to ask and where to listen.
type Config struct {
	Kubeconfig    string
	Subnet        byte
	APIServer     string // host:port where kube-apiserver really listens
	ListenAddress string // for pods and users
	Socket        string // for kube-apiserver
}

// Run serves until the context ends.
func Run(ctx context.Context, c Config) error {
	rest, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	rest.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	services, slices, err := watch(ctx, client)
	if err != nil {
		return err
	}
	resolver := &Resolver{
		Network:   subnet.Network(c.Subnet),
		APIServer: c.APIServer,
		Services:  services,
		Slices:    slices,
	}

	// Listening starts here and not earlier, so that whoever gets a connection gets a right answer.
	tcp, err := net.Listen("tcp4", c.ListenAddress)
	if err != nil {
		return fmt.Errorf("listen for pods: %w", err)
	}
	if err := os.Remove(c.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	unix, err := net.Listen("unix", c.Socket)
	if err != nil {
		return fmt.Errorf("listen for kube-apiserver: %w", err)
	}
	server := &http.Server{
		Handler:           NewHandler(resolver),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, listener := range []net.Listener{tcp, unix} {
		group.Go(func() error {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve %s: %w", listener.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return group.Wait()
}
