package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/version"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
)

// LostAnnotation on a Node makes the agent behave as if that node were cut off.
const LostAnnotation = "localcluster.dynamo/lost"

// Pace of the signs of life, as a kubelet has them. The lease is what the node
// lifecycle controller looks at; the status only repeats itself now and then.
const (
	leaseSeconds   = 40
	leaseRenewal   = 10 * time.Second
	statusRenewal  = 5 * time.Minute
	statusInterval = 10 * time.Second
)

// The GPU that every node has, in the words of GPU feature discovery.
var gpuLabels = map[string]string{
	"nvidia.com/gpu.present":       "true",
	"nvidia.com/gpu.product":       "NVIDIA-H200",
	"nvidia.com/gpu.family":        "hopper",
	"nvidia.com/gpu.memory":        "143771",
	"nvidia.com/gpu.compute.major": "9",
	"nvidia.com/gpu.compute.minor": "0",
	"nvidia.com/gpu.machine":       "localcluster",
	"nvidia.com/gpu.replicas":      "1",
	"nvidia.com/mig.capable":       "true",
	"nvidia.com/mig.strategy":      "single",
	"nvidia.com/cuda.driver.major": "570",
}

// fleet is the nodes: it registers them and gives their signs of life.
type fleet struct {
	client   kubernetes.Interface
	names    []string
	capacity corev1.ResourceList
	labels   map[string]string
	port     uint16
	counts   device.Counts
	offer    *offer

	mu     sync.Mutex
	hearts map[string]context.CancelFunc // of the nodes that live
	seen   map[string]*corev1.Node
}

func newFleet(client kubernetes.Interface, nodes, gpus int, port uint16) *fleet {
	f := &fleet{
		client: client, port: port,
		hearts: map[string]context.CancelFunc{}, seen: map[string]*corev1.Node{},
		capacity: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("192"),
			corev1.ResourceMemory:           resource.MustParse("2Ti"),
			corev1.ResourceEphemeralStorage: resource.MustParse("8Ti"),
			corev1.ResourcePods:             resource.MustParse("250"),
			"rdma/ib":                       resource.MustParse("16"),
		},
		labels: map[string]string{
			corev1.LabelOSStable:   runtime.GOOS,
			corev1.LabelArchStable: runtime.GOARCH,
		},
	}
	for i := range nodes {
		f.names = append(f.names, fmt.Sprintf("node-%d", i))
	}
	if gpus > 0 {
		f.capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
		maps.Copy(f.labels, gpuLabels)
		f.labels["nvidia.com/gpu.count"] = strconv.Itoa(gpus)
	}
	return f
}

// desired is a node as the agent wants it.
func (f *fleet) desired(name string) *corev1.Node {
	labels := maps.Clone(f.labels)
	labels[corev1.LabelHostname] = name
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity: f.capacity, Allocatable: f.capacity,
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostIP}, {Type: corev1.NodeHostName, Address: name}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(f.port)}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: name, SystemUUID: name, BootID: name,
				KernelVersion: "localcluster", OSImage: "localcluster", ContainerRuntimeVersion: "localcluster://1",
				KubeletVersion: version.Get().GitVersion, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			},
			Conditions: conditions(metav1.Now().Rfc3339Copy()),
		},
	}
}

func conditions(at metav1.Time) []corev1.NodeCondition {
	condition := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	}
}

// register makes the nodes that do not exist yet.
func (f *fleet) register(ctx context.Context) error {
	for _, name := range f.names {
		if _, err := f.client.CoreV1().Nodes().Create(ctx, f.desired(name), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("register node %s: %w", name, err)
		}
	}
	return nil
}

// losses is told which nodes are cut off, and which are back.
type losses interface {
	lose(node string)
	regain(node string)
}

// handler starts and stops hearts by what the Node objects say.
func (f *fleet) handler(ctx context.Context, l losses) cache.ResourceEventHandler {
	ours := map[string]bool{}
	for _, name := range f.names {
		ours[name] = true
	}
	see := func(object any) {
		node, ok := object.(*corev1.Node)
		if !ok || !ours[node.Name] {
			return
		}
		f.mu.Lock()
		f.seen[node.Name] = node
		cancel, beats := f.hearts[node.Name]
		f.mu.Unlock()
		switch lost := node.Annotations[LostAnnotation] == "true"; {
		case lost && beats:
			klog.InfoS("Node is lost", "node", node.Name)
			cancel()
			f.mu.Lock()
			delete(f.hearts, node.Name)
			f.mu.Unlock()
			l.lose(node.Name)
		case lost:
			l.lose(node.Name)
		case !beats:
			heart, cancel := context.WithCancel(ctx)
			f.mu.Lock()
			f.hearts[node.Name] = cancel
			f.mu.Unlock()
			go f.beat(heart, node.Name)
			l.regain(node.Name)
		case !ready(node):
			// The lifecycle controller gave us up; do not wait for the next beat.
			go f.post(ctx, node.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}
}

// beat gives the signs of life of one node.
func (f *fleet) beat(ctx context.Context, name string) {
	owned := func(l *coordinationv1.Lease) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if node := f.seen[name]; node != nil {
			l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}
		}
		return nil
	}
	go lease.NewController(clock.RealClock{}, f.client, name, leaseSeconds, nil, leaseRenewal, name, corev1.NamespaceNodeLease, owned).Run(ctx)
	ticker := time.NewTicker(statusInterval)
	defer ticker.Stop()
	for {
		f.post(ctx, name)
		if node := f.node(name); node != nil {
			f.offer.publish(ctx, node)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// node is the Node object as it was last seen; nil if it never was.
func (f *fleet) node(name string) *corev1.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[name]
}

// post brings the Node object to what it should be, if it is not, and renews its
// conditions now and then.
func (f *fleet) post(ctx context.Context, name string) {
	f.mu.Lock()
	node := f.seen[name]
	f.mu.Unlock()
	want := f.desired(name)
	if node != nil {
		// What somebody says a node is, it is: one can be made to look like another.
		maps.DeleteFunc(want.Labels, func(key, _ string) bool { _, has := node.Labels[key]; return has })
	}
	var meta map[string]any
	if len(want.Labels) > 0 {
		meta = map[string]any{"metadata": map[string]any{"labels": want.Labels}}
	}
	status := map[string]any{"status": want.Status}
	if node != nil && upToDate(node, want) {
		status = nil
	}
	if node != nil && status != nil {
		// A condition that stays keeps the time of its last change.
		for i := range want.Status.Conditions {
			for _, old := range node.Status.Conditions {
				if c := &want.Status.Conditions[i]; old.Type == c.Type && old.Status == c.Status {
					c.LastTransitionTime = old.LastTransitionTime
				}
			}
		}
	}
	if err := f.patch(ctx, name, meta); err != nil {
		f.repair(ctx, name, err)
		return
	}
	if err := f.patch(ctx, name, status, "status"); err != nil {
		f.repair(ctx, name, err)
	}
}

func (f *fleet) patch(ctx context.Context, name string, body map[string]any, subresource ...string) error {
	if body == nil {
		return nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("patch node %s: %w", name, err)
	}
	node, err := f.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, subresource...)
	if err != nil {
		return fmt.Errorf("patch node %s: %w", name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[name] = node
	return nil
}

// repair puts back a node that someone deleted; other errors are left to the
// next beat.
func (f *fleet) repair(ctx context.Context, name string, err error) {
	if ctx.Err() != nil {
		return
	}
	if apierrors.IsNotFound(err) {
		_, err = f.client.CoreV1().Nodes().Create(ctx, f.desired(name), metav1.CreateOptions{})
	}
	if err != nil {
		klog.ErrorS(err, "Give a node's sign of life", "node", name)
	}
}

func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// offers reports whether there is all of want. Further resources are those that
// somebody advertises for the node, and stay.
func offers(have, want corev1.ResourceList) bool {
	for name, quantity := range want {
		if there, ok := have[name]; !ok || there.Cmp(quantity) != 0 {
			return false
		}
	}
	return true
}

func upToDate(node, want *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && time.Since(c.LastHeartbeatTime.Time) > statusRenewal {
			return false
		}
	}
	return ready(node) &&
		offers(node.Status.Capacity, want.Status.Capacity) &&
		offers(node.Status.Allocatable, want.Status.Allocatable) &&
		apiequality.Semantic.DeepEqual(node.Status.Addresses, want.Status.Addresses) &&
		node.Status.DaemonEndpoints == want.Status.DaemonEndpoints &&
		node.Status.NodeInfo == want.Status.NodeInfo
}
