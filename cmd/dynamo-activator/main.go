// Command dynamo-activator stands before a frontend in its pod. It passes requests on,
// tells by a Lease when the last one came, and holds those that find no workers until the
// operator has started them.
//
//	dynamo-activator --lease chat-activation --frontend-port 8000 --listen-port 8099
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/activator"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "dynamo-activator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dynamo-activator", flag.ContinueOnError)
	lease := flags.String("lease", "", "name of the Lease by which the graph is woken")
	frontend := flags.Int("frontend-port", pod.PortHTTP, "port of the frontend in this pod")
	listen := flags.Int("listen-port", pod.PortActivator, "port to listen on")
	renewal := flags.Duration("renewal", 30*time.Second, "how often requests are told of at most")
	timeout := flags.Duration("timeout", 10*time.Minute, "how long a request is held at most")
	printVersion := flags.Bool("version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *printVersion {
		fmt.Println("dynamo-activator version", version.String())
		return nil
	}
	if *lease == "" || flags.NArg() > 0 {
		return errors.New("want --lease NAME, and nothing but flags")
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	held, err := activator.Connect(os.Getenv("KUBECONFIG"), os.Getenv("POD_NAMESPACE"), *lease, os.Getenv("POD_NAME"))
	if err != nil {
		return err
	}
	// Pods of a local cluster share a machine: each listens on an address of its own.
	host := os.Getenv("DYNAMO_LISTEN_HOST")
	behind := &url.URL{Scheme: "http", Host: net.JoinHostPort(loopback(host), strconv.Itoa(*frontend))}
	a := activator.New(behind, held, *renewal, activator.DefaultLimits(*timeout), log)
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(*listen)))
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "frontend", behind.String(), "lease", *lease)
	return serve(ctx, listener, a)
}

func loopback(host string) string {
	if host == "" {
		return "127.0.0.1"
	}
	return host
}

const (
	// leaving is how long requests still come after a pod was told to end.
	leaving = 5 * time.Second
	// drain is how long answers under way may take; the pod's grace period ends it
	// earlier.
	drain = 10 * time.Minute
)

// serve ends once everything that was accepted is answered. Requests that are held are
// sent away at once: another frontend can hold them.
func serve(ctx context.Context, listener net.Listener, a *activator.Activator) error {
	server := &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx)
	}()
	select {
	case err := <-failed:
		return err
	case <-ended:
	}
	select {
	case err := <-failed:
		return err
	case <-time.After(leaving):
	}
	shutdown, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	return server.Shutdown(shutdown)
}
