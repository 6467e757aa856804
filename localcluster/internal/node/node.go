// Package node plays the kubelets of all nodes of the local cluster.
//
// The agent offers N Node objects and runs the pods that the scheduler binds to
// them, without root, containers or mounts. This package is its composition: the
// nodes, the list of pods on them, and what they read from the API. How one pod
// runs is package worker; what plays a container is package program.
//
// The agent never creates pods and never decides where they go.
package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/address"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/probe"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/process"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/server"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/worker"
)

// hostIP is the address of every node: all are this machine.
const hostIP = "127.0.0.1"

// Config is what the agent needs to know of its cluster.
type Config struct {
	Kubeconfig string // of the agent's own identity
	Dir        string // of the cluster; pods/ and volumes/ below it
	BinDir     string // where the programs lie that play containers

	Nodes       int
	GPUsPerNode int
	Devices     device.Counts // of each node, for resource claims
	Subnet      byte          // k in 10.k.a.b and 127.k.a.b

	ProxyURL     string // forward proxy, for the containers' environment
	APIServerURL string
	CAFile       string // of the cluster, for the pods' kubeconfig

	ListenAddress                     string // of the kubelet API, one for all nodes
	ServingCert, ServingKey, ClientCA string // files of the kubelet API

	// Pause before a failed container's restart; zero is 1 s and 30 s, shorter
	// than a kubelet's 10 s and 5 min.
	BackoffBase, BackoffMax time.Duration
}

// Run plays the nodes until ctx ends, then stops the pods' processes.
func Run(ctx context.Context, c Config) error {
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return fmt.Errorf("folder of the cluster: %w", err)
	}
	if c.BinDir, err = filepath.Abs(c.BinDir); err != nil {
		return fmt.Errorf("folder of the programs: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the agent's kubeconfig: %w", err)
	}
	// One client speaks for many nodes; the API server's own fairness is enough.
	config.QPS = -1
	config.UserAgent = "localcluster-node"
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	binary.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return fmt.Errorf("make the agent's client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make the agent's client: %w", err)
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})

	listen, err := netip.ParseAddrPort(c.ListenAddress)
	if err != nil {
		return fmt.Errorf("address of the kubelet API: %w", err)
	}
	fleet := newFleet(client, c.Nodes, c.GPUsPerNode, listen.Port())
	fleet.counts = c.Devices
	pods := newPods(hosts(c, client, broadcaster, fleet))
	go func() {
		files := server.TLS{Cert: c.ServingCert, Key: c.ServingKey, ClientCA: c.ClientCA}
		if err := server.Run(ctx, c.ListenAddress, files, pods); err != nil {
			cancel(err)
		}
	}()

	if err := follow(ctx, client, meta, fleet, pods); err != nil {
		return err
	}
	klog.InfoS("Node agent runs", "nodes", c.Nodes, "gpusPerNode", c.GPUsPerNode, "address", c.ListenAddress)
	<-ctx.Done()
	pods.shutdown()
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return cause // not the caller's wish
	}
	return nil
}

// hosts is what the pods of each node find there.
func hosts(c Config, client kubernetes.Interface, events record.EventBroadcaster, f *fleet) map[string]*worker.Host {
	backoff := worker.DefaultBackoff
	if c.BackoffBase > 0 {
		backoff.Base = c.BackoffBase
	}
	if c.BackoffMax > 0 {
		backoff.Max = c.BackoffMax
	}
	shared := worker.Host{
		API: podAPI{client}, Cluster: clusterReader{client}, Claims: claims{client},
		Launcher: process.NewSpawner(), Prober: probe.NewProber(), Addresses: address.NewPool(c.Subnet),
		Dir: c.Dir, BinDir: c.BinDir, HostIP: hostIP,
		ProxyURL: c.ProxyURL, APIServerURL: c.APIServerURL, CAFile: c.CAFile,
		Allocatable: f.capacity, Backoff: backoff,
	}
	out := map[string]*worker.Host{}
	for _, name := range f.names {
		h := shared
		h.Events = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: name})
		out[name] = &h
	}
	return out
}

// follow connects the agent to the API. Nodes come first: whether one is lost
// decides what becomes of its pods. Of ConfigMaps and Secrets it only wants to
// know that they changed; their content is read when a pod needs it.
func follow(ctx context.Context, client kubernetes.Interface, meta metadata.Interface, f *fleet, p *pods) error {
	if err := f.register(ctx); err != nil {
		return err
	}
	if err := f.offerDevices(ctx); err != nil {
		return err
	}
	bound := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}, onNodes)
	p.ctx, p.known = ctx, corelisters.NewPodLister(bound.GetIndexer())
	nodes := coreinformers.NewNodeInformer(client, 0, cache.Indexers{})
	if err := watch(ctx, nodes, f.handler(ctx, p)); err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	if err := watch(ctx, bound, nil); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if err := p.begin(); err != nil {
		return err
	}
	if _, err := bound.AddEventHandler(p.handler()); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	for kind, resource := range map[string]string{kindConfigMap: "configmaps", kindSecret: "secrets"} {
		changes := metadatainformer.NewFilteredMetadataInformer(meta, corev1.SchemeGroupVersion.WithResource(resource), metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
		if err := watch(ctx, changes, p.contentHandler(kind)); err != nil {
			return fmt.Errorf("watch %s: %w", resource, err)
		}
	}
	return nil
}

// watch runs an informer, and returns once it and its handler, if there is one,
// know what there is.
func watch(ctx context.Context, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	synced := informer.HasSynced
	if handler != nil {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return err
		}
		synced = registration.HasSynced
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return context.Cause(ctx)
	}
	return nil
}

// onNodes leaves out pods that wait for a node.
func onNodes(o *metav1.ListOptions) {
	o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
}
