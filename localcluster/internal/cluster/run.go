// Package cluster brings a whole cluster up, watches over it and takes it down again. Every decision about a single
// program is in controlplane; this package has the order.
package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/addon"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// StartTimeout is far beyond what a start takes, even on a machine that is busy with builds.
const StartTimeout = 5 * time.Minute

// Observer is told how a start goes.
type Observer interface {
	Progress(line string)
	Ready(clusterdir.State)
}

// Run starts the cluster and supervises it until the context ends, then stops it. It is an error if the cluster does
// not become ready, or if another process already supervises the directory.
func Run(ctx context.Context, o Options, observer Observer) error {
	if err := o.Dir.Create(); err != nil {
		return err
	}
	lock, err := o.Dir.Lock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := o.Dir.CheckDisk(clusterdir.MinimumFree); err != nil {
		return err
	}
	state, reservation, err := o.settle()
	if err != nil {
		return err
	}
	defer func() { _ = reservation.Close() }()
	addOns, err := addon.Choose(state.AddOns)
	if err != nil {
		return err
	}
	if err := addOns.Available(); err != nil {
		return err
	}

	c, err := prepare(o, state)
	if err != nil {
		return err
	}
	defer c.Dir.RemoveSocketDir(c.State.SocketDir)

	log, err := os.OpenFile(o.Dir.Log(SupervisorLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of supervisor: %w", err)
	}
	defer func() { _ = log.Close() }()
	s := &start{cluster: c, addOns: addOns, supervisor: supervisor.New(o.Dir, log), observer: observer, serverOnly: o.ServerOnly}
	defer func() {
		s.supervisor.Stop()
		c.State.Ready, c.State.SupervisorPID = false, 0
		_ = c.Dir.WriteState(c.State) // only read by people from here on
	}()
	if err := s.all(ctx); err != nil {
		return err
	}
	c.State.Ready = true
	if err := c.Dir.WriteState(c.State); err != nil {
		return err
	}
	observer.Ready(c.State)
	<-ctx.Done()
	return nil
}

// SupervisorLog names the log of this process beside those of the components.
const SupervisorLog = "supervisor"

// prepare writes everything that the programs read.
func prepare(o Options, state clusterdir.State) (controlplane.Cluster, error) {
	c := controlplane.Cluster{Dir: o.Dir, State: state}
	var err error
	if err := assignPorts(&c.State); err != nil {
		return c, err
	}
	if c.State.SocketDir, err = o.Dir.MakeSocketDir(); err != nil {
		return c, err
	}
	c.State.BinDir = o.BinDir
	c.State.AuditLog = o.AuditLog
	c.State.SupervisorPID = os.Getpid()
	c.State.Ready = false
	if err := o.Dir.WriteState(c.State); err != nil {
		return c, err
	}
	for _, dir := range []string{o.Dir.Logs(), o.Dir.Volumes(), o.Dir.Etcd()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return c, fmt.Errorf("create directory: %w", err)
		}
	}
	if c.PKI, err = pki.Ensure(o.Dir.PKI(), controlplane.Hosts(subnet.Network(c.State.Subnet))); err != nil {
		return c, err
	}
	return c, c.WriteAdminKubeconfig()
}

// NewClient returns an administrator's client.
func NewClient(dir clusterdir.Dir) (kubernetes.Interface, error) {
	config, err := adminConfig(dir)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build client: %w", err)
	}
	return client, nil
}

func adminConfig(dir clusterdir.Dir) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", dir.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	return config, nil
}
