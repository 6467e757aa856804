package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/addon"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/health"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// start is one attempt to bring the programs up:
//
//	etcd, kube-apiserver --ready--> seed, kinds of add-ons
//	    --> controller-manager, scheduler, proxy, node agent --ready--> programs of add-ons --ready--> done
type start struct {
	cluster    controlplane.Cluster
	addOns     addon.Set
	supervisor *supervisor.Supervisor
	observer   Observer
	serverOnly bool
	checks     map[string]health.Check
}

func (s *start) all(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()

	client, err := NewClient(s.cluster.Dir)
	if err != nil {
		return err
	}
	if s.checks, err = Checks(s.cluster, client); err != nil {
		return err
	}
	programs, err := s.programs()
	if err != nil {
		return err
	}
	// kube-apiserver waits for etcd by itself, and has much to do before it needs it.
	const storage = 2
	if err := s.group(ctx, programs[:storage]); err != nil {
		return err
	}
	if err := seed(ctx, client, s.cluster.State.Devices); err != nil {
		return err
	}
	// Before the controllers start: the garbage collector looks for new kinds twice a minute only.
	if err := s.install(ctx); err != nil {
		return err
	}
	if s.serverOnly {
		return nil
	}
	if err := s.group(ctx, programs[storage:]); err != nil {
		return err
	}
	addOns, err := s.addOns.Programs(s.cluster)
	if err != nil {
		return err
	}
	if err := s.group(ctx, addOns); err != nil {
		return err
	}
	// Without it no pod can be created in the namespace that everybody tries first.
	return health.Wait(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// install brings the add-ons' kinds into the API.
func (s *start) install(ctx context.Context) error {
	if len(s.addOns) == 0 {
		return nil
	}
	config, err := adminConfig(s.cluster.Dir)
	if err != nil {
		return err
	}
	config.QPS = -1 // nobody else is there to be spared yet
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build client: %w", err)
	}
	begin := time.Now()
	if err := s.addOns.Install(ctx, client, s.cluster); err != nil {
		return err
	}
	s.observer.Progress(fmt.Sprintf("%s installed %.1fs", strings.Join(s.cluster.State.AddOns, ", "), time.Since(begin).Seconds()))
	return nil
}

// Checks says how to ask each program of a cluster whether it does its work.
func Checks(c controlplane.Cluster, client kubernetes.Interface) (map[string]health.Check, error) {
	checks, err := controlplane.Checks(c, client)
	if err != nil {
		return nil, err
	}
	addOns, err := addon.Choose(c.State.AddOns)
	if err != nil {
		return nil, err
	}
	more, err := addOns.Checks(c)
	if err != nil {
		return nil, err
	}
	maps.Copy(checks, more)
	return checks, nil
}

// programs lists what a cluster consists of, in starting order.
func (s *start) programs() ([]supervisor.Program, error) {
	list := []supervisor.Program{controlplane.Etcd(s.cluster)}
	for _, describe := range []func(controlplane.Cluster) (supervisor.Program, error){
		controlplane.APIServer,
		controlplane.ControllerManager,
		controlplane.Scheduler,
		controlplane.Proxy,
		controlplane.NodeAgent,
	} {
		program, err := describe(s.cluster)
		if err != nil {
			return nil, err
		}
		list = append(list, program)
	}
	return list, nil
}

// group starts programs together and waits for each.
func (s *start) group(ctx context.Context, programs []supervisor.Program) error {
	begin := time.Now()
	for _, p := range programs {
		if err := s.supervisor.Start(p); err != nil {
			return err
		}
	}
	for _, p := range programs {
		if err := s.wait(ctx, p.Name); err != nil {
			return err
		}
		s.observer.Progress(fmt.Sprintf("%s ready %.1fs", p.Name, time.Since(begin).Seconds()))
	}
	return nil
}

// A program that ends this often before it was ever ready will not get ready by patience. On a busy machine some give
// up on the API server once or twice, after ten seconds each.
const hopeless = 6

var errCrashing = errors.New("keeps ending")

func (s *start) wait(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := health.Wait(ctx, func(ctx context.Context) error {
		if exit, times := s.supervisor.Failure(name); times >= hopeless {
			cancel(fmt.Errorf("%w: %s", errCrashing, exit))
		}
		return s.checks[name](ctx)
	})
	if err == nil {
		return nil
	}
	file := s.cluster.Dir.Log(name)
	return fmt.Errorf("wait for %s: %w\nend of %s:\n%s", name, err, file, tail(file, 5))
}

// tail returns the last lines of a file, for an error that would otherwise send its reader there.
func tail(file string, lines int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
