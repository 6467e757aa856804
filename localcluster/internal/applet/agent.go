package applet

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/addon"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/addon/fakegrove"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/proxy"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/storage"
)

// The cluster's own programs read cluster.json rather than a flag per field: they are started by the supervisor, which
// wrote it.

func runProxy(args []string) error {
	c, err := readCluster(controlplane.ProxyName, args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	api, err := url.Parse(c.State.APIServer)
	if err != nil {
		return fmt.Errorf("parse API server URL: %w", err)
	}
	listen, err := url.Parse(c.State.ProxyURL)
	if err != nil {
		return fmt.Errorf("parse proxy URL: %w", err)
	}
	return proxy.Run(ctx, proxy.Config{
		Kubeconfig:    c.KubeconfigOf(controlplane.ProxyName),
		Subnet:        c.State.Subnet,
		APIServer:     api.Host,
		ListenAddress: listen.Host,
		Socket:        c.EgressSocket(),
	})
}

func runNodeAgent(args []string) error {
	c, err := readCluster(controlplane.NodeAgentName, args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	kubeconfig := c.KubeconfigOf(controlplane.NodeAgentName)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return node.Run(ctx, node.Config{
			Kubeconfig:    kubeconfig,
			Dir:           string(c.Dir),
			BinDir:        c.State.BinDir,
			Nodes:         c.State.Nodes,
			GPUsPerNode:   c.State.GPUsPerNode,
			Devices:       c.State.Devices,
			Subnet:        c.State.Subnet,
			ProxyURL:      c.State.ProxyURL,
			APIServerURL:  c.State.APIServer,
			ListenAddress: c.State.KubeletAddress,
			ServingCert:   c.PKI.Component.Cert,
			ServingKey:    c.PKI.Component.Key,
			ClientCA:      c.PKI.CA,
			CAFile:        c.PKI.CA,
		})
	})
	group.Go(func() error {
		return storage.Run(ctx, storage.Config{Kubeconfig: kubeconfig, Volumes: c.Dir.Volumes()})
	})
	return group.Wait()
}

func runGrove(args []string) error {
	c, err := readCluster(addon.GroveName, args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return fakegrove.Run(ctx, fakegrove.Config{
		Kubeconfig:    c.KubeconfigOf(addon.GroveName),
		HealthAddress: addon.GroveHealthAddress(c),
	})
}

func readCluster(name string, args []string) (controlplane.Cluster, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	dirFlag := flags.String("dir", "", "directory of the cluster")
	if err := flags.Parse(args); err != nil {
		return controlplane.Cluster{}, err
	}
	dir, err := clusterdir.Resolve(*dirFlag)
	if err != nil {
		return controlplane.Cluster{}, err
	}
	return controlplane.Open(dir)
}
