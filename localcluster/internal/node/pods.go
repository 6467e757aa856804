package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/address"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/server"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/worker"
)

// shutdownGrace is what processes get when the whole agent ends. Nobody waits
// for their last requests then, but they may want to say goodbye.
const shutdownGrace = 3 * time.Second

// pods keeps one worker per pod on our nodes.
type pods struct {
	hosts map[string]*worker.Host
	ctx   context.Context // of the workers
	known corelisters.PodLister

	mu      sync.Mutex
	begun   bool // known is complete
	lost    map[string]bool
	running map[types.UID]*entry
	closed  bool
}

type entry struct {
	*worker.Worker
	node string
	uses map[reference]bool
}

func newPods(hosts map[string]*worker.Host) *pods {
	return &pods{hosts: hosts, lost: map[string]bool{}, running: map[types.UID]*entry{}}
}

// begin sweeps what a former agent left, and starts the pods that there are.
func (p *pods) begin() error {
	p.mu.Lock()
	p.begun = true
	p.mu.Unlock()
	p.sweep()
	return p.seeAll()
}

// handler follows the pods that are bound to nodes.
func (p *pods) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { p.see(object.(*corev1.Pod)) },
		UpdateFunc: func(before, object any) {
			if old := before.(*corev1.Pod); old.UID != object.(*corev1.Pod).UID {
				p.miss(old) // deleted and made anew while we did not look
			}
			p.see(object.(*corev1.Pod))
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				p.miss(pod)
			}
		},
	}
}

// see gives a pod its worker, or its worker the news.
func (p *pods) see(pod *corev1.Pod) {
	host, ours := p.hosts[pod.Spec.NodeName]
	if !ours {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost[pod.Spec.NodeName] || p.closed {
		return
	}
	if e, ok := p.running[pod.UID]; ok {
		e.Update(pod)
		return
	}
	e := &entry{Worker: worker.New(host, pod), node: pod.Spec.NodeName, uses: references(pod)}
	p.running[pod.UID] = e
	go e.Run(p.ctx)
}

// seeAll sees every pod that there is. Those that have an address come first, to
// claim it before others can take it.
func (p *pods) seeAll() error {
	all, err := p.known.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	slices.SortStableFunc(all, func(a, b *corev1.Pod) int { return -strings.Compare(a.Status.PodIP, b.Status.PodIP) })
	for _, pod := range all {
		p.see(pod)
	}
	return nil
}

// miss ends the worker of a pod that the API has no more. Only now is it
// forgotten: late news of the pod must not bring it back to life.
func (p *pods) miss(pod *corev1.Pod) {
	p.mu.Lock()
	e, ok := p.running[pod.UID]
	lost := p.lost[pod.Spec.NodeName]
	p.mu.Unlock()
	if !ok || lost {
		return // a lost node learns it when it is back
	}
	e.Vanish()
	go func() {
		<-e.Done()
		p.mu.Lock()
		delete(p.running, pod.UID)
		p.mu.Unlock()
		discard(worker.Folder(p.hosts[e.node].Dir, pod))
	}()
}

// lose kills what runs on a node, without a word.
func (p *pods) lose(node string) {
	p.mu.Lock()
	p.lost[node] = true
	gone := p.on(node)
	p.mu.Unlock()
	p.silence(gone, 0)
}

// regain starts the pods that are still a node's.
func (p *pods) regain(node string) {
	p.mu.Lock()
	back := p.begun && p.lost[node]
	p.lost[node] = false
	p.mu.Unlock()
	if !back {
		return
	}
	p.sweep()
	if err := p.seeAll(); err != nil {
		klog.ErrorS(err, "Start the pods of a node that is back", "node", node)
	}
}

// shutdown ends all processes.
func (p *pods) shutdown() {
	p.mu.Lock()
	p.closed = true
	all := p.on("")
	p.mu.Unlock()
	p.silence(all, shutdownGrace)
}

// silence ends workers and forgets them.
func (p *pods) silence(gone map[types.UID]*entry, grace time.Duration) {
	for _, e := range gone {
		e.Silence(grace)
	}
	for uid, e := range gone {
		<-e.Done()
		p.mu.Lock()
		delete(p.running, uid)
		p.mu.Unlock()
	}
}

// on is the pods of one node, or of all.
func (p *pods) on(node string) map[types.UID]*entry {
	out := map[types.UID]*entry{}
	for uid, e := range p.running {
		if node == "" || e.node == node {
			out[uid] = e
		}
	}
	return out
}

// sweep removes what is left of pods that ended unseen.
func (p *pods) sweep() {
	var dir string
	var addresses *address.Pool
	for _, host := range p.hosts { // they share both
		dir, addresses = filepath.Join(host.Dir, "pods"), host.Addresses
	}
	all, err := p.known.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "List the pods whose folders stay")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	alive := map[string]bool{}
	for _, pod := range all {
		alive[string(pod.UID)] = true
	}
	for uid := range p.running {
		alive[string(uid)] = true
	}
	addresses.Retain(func(uid string) bool { return alive[uid] })
	folders, _ := os.ReadDir(dir) // none yet
	for _, folder := range folders {
		if uid := folder.Name()[strings.LastIndexByte(folder.Name(), '_')+1:]; !alive[uid] {
			discard(filepath.Join(dir, folder.Name()))
		}
	}
}

func discard(folder string) {
	if err := os.RemoveAll(folder); err != nil {
		klog.ErrorS(err, "Remove the folder of a pod that is gone")
	}
}

// contentHandler tells workers that a ConfigMap or Secret of theirs changed.
func (p *pods) contentHandler(kind string) cache.ResourceEventHandler {
	tell := func(object any) {
		meta, ok := object.(metav1.Object)
		if !ok {
			return
		}
		ref := reference{kind, meta.GetNamespace(), meta.GetName()}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.running {
			if e.uses[ref] {
				e.Refresh()
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }}
}

// Log implements server.Pods.
func (p *pods) Log(namespace, pod, container string, previous bool) (string, func() bool, error) {
	e, err := p.find(namespace, pod)
	if err != nil {
		return "", nil, err
	}
	return e.Worker.Log(container, previous)
}

// Host implements server.Pods.
func (p *pods) Host(namespace, pod string) (string, error) {
	e, err := p.find(namespace, pod)
	if err != nil {
		return "", err
	}
	host := e.Worker.Host()
	if host == "" {
		return "", server.NotFoundError{Namespace: namespace, Pod: pod}
	}
	return host, nil
}

// find prefers the younger of two pods with one name: the elder is on its way out.
func (p *pods) find(namespace, name string) (*entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *entry
	for _, e := range p.running {
		pod := e.Pod()
		if pod.Namespace == namespace && pod.Name == name && (found == nil || found.Pod().CreationTimestamp.Before(&pod.CreationTimestamp)) {
			found = e
		}
	}
	if found == nil {
		return nil, server.NotFoundError{Namespace: namespace, Pod: name}
	}
	return found, nil
}
