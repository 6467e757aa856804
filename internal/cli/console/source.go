package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
)

// kind is one that the console watches, once for all pages.
type kind struct {
	// name is what pages and kubectl call it.
	name   string
	object client.Object
	list   client.ObjectList
}

// The kinds. What is optional in a cluster is watched where it is served.
var (
	graphKind   = kind{"dynamographdeployments", &v1alpha1.DynamoGraphDeployment{}, &v1alpha1.DynamoGraphDeploymentList{}}
	podKind     = kind{"pods", &corev1.Pod{}, &corev1.PodList{}}
	eventKind   = kind{"events", &corev1.Event{}, &corev1.EventList{}}
	nodeKind    = kind{"nodes", &corev1.Node{}, &corev1.NodeList{}}
	modelKind   = kind{"dynamomodels", &v1alpha1.DynamoModel{}, &v1alpha1.DynamoModelList{}}
	requestKind = kind{"dynamographdeploymentrequests", &v1alpha1.DynamoGraphDeploymentRequest{}, &v1alpha1.DynamoGraphDeploymentRequestList{}}
	deployKind  = kind{"deployments", &appsv1.Deployment{}, &appsv1.DeploymentList{}}
	adapterKind = kind{"dynamographdeploymentscalingadapters", &v1alpha1.DynamoGraphDeploymentScalingAdapter{}, &v1alpha1.DynamoGraphDeploymentScalingAdapterList{}}
	// Components say how many replicas were granted, autoscalers who asked.
	componentKind  = kind{"dynamocomponentdeployments", &v1alpha1.DynamoComponentDeployment{}, &v1alpha1.DynamoComponentDeploymentList{}}
	autoscalerKind = kind{"horizontalpodautoscalers", &autoscalingv2.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscalerList{}}

	groupKind  = kind{"leaderworkersets", &lwsv1.LeaderWorkerSet{}, &lwsv1.LeaderWorkerSetList{}}
	cliqueKind = kind{"podcliques", &grovev1alpha1.PodClique{}, &grovev1alpha1.PodCliqueList{}}

	kinds = []kind{graphKind, podKind, eventKind, nodeKind, modelKind, requestKind, adapterKind, componentKind, autoscalerKind, deployKind, groupKind, cliqueKind}
)

// Pauses between attempts to watch what could not be watched.
const (
	retryRefused = 30 * time.Second
	retryFailed  = 2 * time.Second
	retryDialled = time.Second
)

// source holds what the console knows of the cluster: one watch of each kind, with
// the caller's rights, however many pages are open.
type source struct {
	cluster   *connect.Cluster
	namespace string // empty for all
	cache     cache.Cache
	logs      *observe.Logs
	reach     *reach
	changes   *hub
	past      *past

	mu       sync.Mutex
	standing map[string]standing
}

// standing is how far a kind is.
type standing struct {
	synced func() bool
	// problem says in words why it is not seen; absent that it does not exist there.
	problem string
	absent  bool
}

func newSource(cluster *connect.Cluster, namespace string) (*source, error) {
	s := &source{
		cluster: cluster, namespace: namespace, logs: observe.NewLogs(cluster.Pods), changes: newHub(), past: newPast(), standing: map[string]standing{},
	}
	s.reach = &reach{changed: s.changes.notify}
	config := *cluster.Config
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return observed{next, s.reach} })
	options := cache.Options{
		Scheme: cluster.Scheme(), Mapper: cluster.RESTMapper(), ReaderFailOnMissingInformer: true, DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform: trim, DefaultWatchErrorHandler: s.watchFailed,
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	var err error
	if s.cache, err = cache.New(&config, options); err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	return s, nil
}

// follow begins to watch a kind as soon as the caller may. Whether they may is asked
// by reading, not by a review of rights, which a log of changes would show.
func (s *source) follow(ctx context.Context, k kind) {
	for {
		pause := retryFailed
		err := s.cluster.List(ctx, k.list.DeepCopyObject().(client.ObjectList), client.InNamespace(s.namespace), client.Limit(1))
		switch {
		case err == nil:
			if err = s.watch(ctx, k); err == nil {
				return
			}
			s.stand(k, standing{problem: err.Error()})
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			s.stand(k, standing{absent: true, problem: k.name + " do not exist in this cluster"})
			pause = retryRefused
		case apierrors.IsForbidden(err):
			s.stand(k, standing{problem: forbidden(k, s.namespace)})
			pause = retryRefused
		default:
			s.reach.failed(err)
			s.stand(k, standing{problem: k.name + " cannot be read: " + err.Error()})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func forbidden(k kind, namespace string) string {
	switch {
	case k.name == nodeKind.name:
		return "You may not list nodes, so nodes and free GPUs are not shown."
	case namespace == "":
		return "You may not list " + k.name + " of all namespaces. Name one that you may read: kubectl dynamo ui --namespace NAME."
	default:
		return "You may not list " + k.name + " in namespace " + namespace + "."
	}
}

func (s *source) watch(ctx context.Context, k kind) error {
	if k.name == eventKind.name {
		for field, value := range map[string]func(*corev1.Event) string{
			"involvedObject.kind": func(e *corev1.Event) string { return e.InvolvedObject.Kind },
			"involvedObject.name": func(e *corev1.Event) string { return e.InvolvedObject.Name },
		} {
			if err := s.cache.IndexField(ctx, k.object, field, func(o client.Object) []string { return []string{value(o.(*corev1.Event))} }); err != nil {
				return err
			}
		}
	}
	informer, err := s.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	changed := func(object any) {
		s.remember(ctx, object)
		s.changes.notify()
	}
	gone := func(object any) {
		if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
			object = last.Obj
		}
		if dgd, is := object.(*v1alpha1.DynamoGraphDeployment); is {
			s.past.forget(client.ObjectKeyFromObject(dgd))
		}
		s.changes.notify()
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: gone, UpdateFunc: func(_, now any) { changed(now) },
	})
	if err != nil {
		return err
	}
	s.stand(k, standing{synced: registration.HasSynced})
	return nil
}

// remember keeps what is seen of a graph when it or a scaling adapter of it changes.
func (s *source) remember(ctx context.Context, object any) {
	var dgd *v1alpha1.DynamoGraphDeployment
	switch o := object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		dgd = o
	case *v1alpha1.DynamoGraphDeploymentScalingAdapter:
		dgd = &v1alpha1.DynamoGraphDeployment{}
		if err := s.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.DGDRef.Name}, dgd); err != nil {
			return // it comes later, or is somebody else's
		}
	default:
		return
	}
	var adapters v1alpha1.DynamoGraphDeploymentScalingAdapterList
	if err := s.List(ctx, &adapters, client.InNamespace(dgd.Namespace)); err != nil {
		adapters.Items = nil // without them, the spec says what is wanted
	}
	s.past.note(dgd, adapters.Items, time.Now())
}

func (s *source) stand(k kind, now standing) {
	s.mu.Lock()
	before := s.standing[k.name]
	s.standing[k.name] = now
	s.mu.Unlock()
	if before.problem != now.problem {
		s.changes.notify()
	}
}

// watchFailed is told when a watch breaks. A right that was taken away is shown; all
// else is tried again and told by how the server is reached.
func (s *source) watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	for _, k := range kinds {
		if r.TypeDescription() != reflect.TypeOf(k.object).String() {
			continue
		}
		s.mu.Lock()
		now := s.standing[k.name]
		s.mu.Unlock()
		if apierrors.IsForbidden(err) && now.problem == "" {
			now.problem = forbidden(k, s.namespace)
			s.stand(k, now)
			go s.regain(ctx, k)
		}
	}
}

// regain waits until a right is given back; the watch goes on by itself. It asks soon at
// first: a server that has just started refuses everything until it has read its roles.
func (s *source) regain(ctx context.Context, k kind) {
	for pause := retryFailed; ; pause = min(2*pause, retryRefused) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if s.cluster.List(ctx, k.list.DeepCopyObject().(client.ObjectList), client.InNamespace(s.namespace), client.Limit(1)) == nil {
			s.mu.Lock()
			now := s.standing[k.name]
			s.mu.Unlock()
			now.problem = ""
			s.stand(k, now)
			return
		}
	}
}

// seen reports whether a kind is known, and if not says why in words.
func (s *source) seen(k kind) (ok bool, why string) {
	s.mu.Lock()
	now, known := s.standing[k.name]
	s.mu.Unlock()
	switch {
	case !known:
		return false, ""
	case now.problem != "":
		return false, now.problem
	case !now.synced():
		return false, ""
	default:
		return true, ""
	}
}

// settled waits until each of some kinds is known or known to be unknown, but not for
// long: a page that comes at once and fills itself is better than one that waits.
func (s *source) settled(ctx context.Context, some ...kind) {
	ctx, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if !slices.ContainsFunc(some, func(k kind) bool {
			ok, why := s.seen(k)
			return !ok && why == ""
		}) {
			tick.Stop()
			return
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// loading is what a page says of kinds whose first list has not come.
const loading = "Reading the cluster …"

// missing says in words what of some kinds cannot be shown. What does not exist in a
// cluster is missed only by who asks for it.
func (s *source) missing(some ...kind) []string {
	var all []string
	for _, k := range some {
		if ok, why := s.seen(k); !ok {
			if why == "" {
				why = loading
			}
			if !slices.Contains(all, why) {
				all = append(all, why)
			}
		}
	}
	return all
}

// List reads from what is watched. Kinds that may not be read are empty: the page
// says so beside.
func (s *source) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	for _, k := range kinds {
		if reflect.TypeOf(k.list) == reflect.TypeOf(list) {
			if ok, _ := s.seen(k); !ok {
				return nil
			}
			return s.cache.List(ctx, list, options...)
		}
	}
	return s.cluster.List(ctx, list, options...)
}

// Get reads graphs and requests from what is watched, and asks for all else.
func (s *source) Get(ctx context.Context, key types.NamespacedName, object client.Object, options ...client.GetOption) error {
	for _, k := range []kind{graphKind, requestKind, podKind} {
		if reflect.TypeOf(k.object) == reflect.TypeOf(object) {
			if ok, why := s.seen(k); !ok {
				return errors.New(why)
			}
			return s.cache.Get(ctx, key, object, options...)
		}
	}
	return s.cluster.Get(ctx, key, object, options...)
}

var _ client.Reader = &source{}

// reach is whether the API server answers.
type reach struct {
	changed func()
	mu      sync.Mutex
	since   time.Time
	reason  string
}

func (r *reach) failed(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsForbidden(err) {
		return
	}
	r.mu.Lock()
	fresh := r.since.IsZero()
	if fresh {
		r.since = time.Now()
	}
	r.reason = err.Error()
	r.mu.Unlock()
	if fresh {
		r.changed()
	}
}

func (r *reach) answered() {
	r.mu.Lock()
	back := !r.since.IsZero()
	r.since, r.reason = time.Time{}, ""
	r.mu.Unlock()
	if back {
		r.changed()
	}
}

// down is since when the server does not answer; zero while it does.
func (r *reach) down() (since time.Time, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since, r.reason
}

// observed notes whether requests are answered. One that found no server waits for it:
// informers would pause for longer each time, up to a minute, and a page would go on
// showing what was known though the server is back.
type observed struct {
	next  http.RoundTripper
	reach *reach
}

func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(r)
	for undialled(err) && r.Method == http.MethodGet {
		o.reach.failed(err)
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(retryDialled):
		}
		response, err = o.next.RoundTrip(r)
	}
	if err != nil {
		o.reach.failed(err)
		return nil, err
	}
	if response.StatusCode != http.StatusServiceUnavailable && response.StatusCode != http.StatusBadGateway {
		o.reach.answered()
	}
	return response, nil
}

// undialled reports whether there was no connection, so that nothing was asked.
func undialled(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// hub tells pages that something changed.
type hub struct {
	mu        sync.Mutex
	listeners map[chan struct{}]bool
}

func newHub() *hub { return &hub{listeners: map[chan struct{}]bool{}} }

// notify never waits: a listener that has a notice already needs no second one.
func (h *hub) notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.listeners {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (h *hub) listen() (changes <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	h.listeners[c] = true
	h.mu.Unlock()
	return c, func() {
		h.mu.Lock()
		delete(h.listeners, c)
		h.mu.Unlock()
	}
}

// lastApplied is what kubectl apply leaves in an object: all of it once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// trim keeps of objects what pages show.
func trim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return trimPod(o)
	case *corev1.Event:
		return trimEvent(o), nil
	case *corev1.Node:
		return trimNode(o), nil
	case *appsv1.Deployment:
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation, Labels: o.Labels},
			Status:     o.Status,
		}, nil
	case *v1alpha1.DynamoComponentDeployment:
		kept := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: o.Labels}}
		kept.Spec.ServiceName, kept.Spec.Replicas = o.Spec.ServiceName, o.Spec.Replicas
		return kept, nil
	case *v1alpha1.DynamoGraphDeployment, *v1alpha1.DynamoGraphDeploymentScalingAdapter:
		// Who wrote the spec is who asked for replicas.
		of := o.(metav1.Object)
		of.SetManagedFields(slices.DeleteFunc(of.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" }))
		delete(of.GetAnnotations(), lastApplied)
	case metav1.Object:
		o.SetManagedFields(nil)
		delete(o.GetAnnotations(), lastApplied)
	}
	return object, nil
}

// trimPod keeps what observe keeps of a pod, and of pods that are no graph's only
// where they are and what they hold.
func trimPod(pod *corev1.Pod) (any, error) {
	if pod.Labels[v1alpha1.LabelGraphName] != "" {
		return observe.TrimPod(pod)
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	for _, c := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: c.Name, Resources: c.Resources})
	}
	return kept, nil
}

// longest bounds what is kept of an event's message.
const longest = 1024

func trimEvent(e *corev1.Event) *corev1.Event {
	message := e.Message
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + " …"
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion, CreationTimestamp: e.CreationTimestamp},
		InvolvedObject: e.InvolvedObject, Reason: e.Reason, Message: message, Type: e.Type,
		Count: e.Count, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime, Series: e.Series,
	}
}

func trimNode(n *corev1.Node) *corev1.Node {
	kept := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels},
		Spec:       corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable}, Status: corev1.NodeStatus{Allocatable: n.Status.Allocatable},
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady { // without its heartbeat
			kept.Status.Conditions = append(kept.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
	return kept
}
