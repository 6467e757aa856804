package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	// fieldManager owns what workers say of themselves.
	fieldManager = "dynamo-worker"
	// enabledSelector marks the EndpointSlices of components that take part.
	enabledSelector = "nvidia.com/dynamo-discovery-enabled=true"
	// debounce gathers the changes of a moment, such as a rollout's, into one.
	debounce = 500 * time.Millisecond
	// applyTimeout bounds one attempt to publish.
	applyTimeout = 10 * time.Second
	maxBackoff   = 15 * time.Second
)

var metadataResource = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1alpha1", Resource: "dynamoworkermetadatas"}

// Pod is who publishes: the pod as a whole, or one container of it where several
// have something to say.
type Pod struct{ Name, Namespace, UID, Container string }

// object is the name under which it does.
func (p Pod) object() string {
	if p.Container == "" {
		return p.Name
	}
	return p.Name + "-" + p.Container
}

// Kubernetes is the store in the API server. A process is live when its pod
// is a ready endpoint of a labelled EndpointSlice and owns an object. The API server may go away at any time: what was known stays
// valid, what was to be published is tried again.
type Kubernetes struct {
	pod     Pod
	objects dynamic.ResourceInterface
	log     *slog.Logger
	// What Watch follows: the metadata objects and the EndpointSlices.
	metadata, slices cache.ListerWatcher

	mu      sync.Mutex
	latest  *Metadata
	version int // of latest
	applied int // version the API server has
	bell    chan struct{}
	news    chan struct{} // closed and replaced when applied changes
	start   sync.Once
	stop    context.CancelFunc
	ctx     context.Context
}

// NewKubernetes connects by a kubeconfig file, or as a pod when it is empty.
func NewKubernetes(kubeconfig string, pod Pod, log *slog.Logger) (*Kubernetes, error) {
	if pod.Name == "" || pod.UID == "" {
		return nil, errors.New("kubernetes discovery needs POD_NAME and POD_UID")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubernetes discovery: %w", err)
	}
	klog.SetSlogLogger(log)
	return newKubernetes(config, pod, log)
}

func newKubernetes(config *rest.Config, pod Pod, log *slog.Logger) (*Kubernetes, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes discovery: %w", err)
	}
	slices, err := sliceClient(config)
	if err != nil {
		return nil, fmt.Errorf("kubernetes discovery: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	mine := objects.Resource(metadataResource).Namespace(pod.Namespace)
	return &Kubernetes{
		pod:      pod,
		objects:  mine,
		metadata: follow(mine),
		slices: cache.NewFilteredListWatchFromClient(slices, "endpointslices", pod.Namespace, func(o *metav1.ListOptions) {
			o.LabelSelector = enabledSelector
		}),
		log: log, bell: make(chan struct{}, 1), news: make(chan struct{}), ctx: ctx, stop: stop,
	}, nil
}

// sliceClient knows one API group only: the usual clientset knows them all,
// which costs every pod tens of megabytes and start-up time.
func sliceClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := discoveryv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	c.GroupVersion = &discoveryv1.SchemeGroupVersion
	c.APIPath = "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(c)
}

// Publish notes the metadata for the background loop.
func (k *Kubernetes) Publish(data Metadata) {
	data = data.Clone()
	k.mu.Lock()
	k.latest = &data
	k.version++
	k.mu.Unlock()
	k.start.Do(func() { go k.publishLoop() })
	select {
	case k.bell <- struct{}{}:
	default:
	}
}

// Close publishes that nothing is served any more.
func (k *Kubernetes) Close(ctx context.Context) {
	defer k.stop()
	k.mu.Lock()
	published := k.latest != nil
	k.mu.Unlock()
	if !published {
		return
	}
	k.Publish(NewMetadata())
	for {
		k.mu.Lock()
		done, news := k.applied == k.version, k.news
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			k.log.Warn("could not withdraw from discovery in time", "pod", k.pod.Name)
			return
		}
	}
}

func (k *Kubernetes) publishLoop() {
	backoff := debounce
	for {
		k.mu.Lock()
		data, version, applied := k.latest, k.version, k.applied
		k.mu.Unlock()
		if version != applied {
			err := k.apply(*data)
			if err == nil {
				k.log.Info("published to discovery", "pod", k.pod.Name, "endpoints", len(data.Endpoints), "models", len(data.ModelCards))
				backoff = debounce
				k.mu.Lock()
				k.applied = version
				close(k.news)
				k.news = make(chan struct{})
				k.mu.Unlock()
				continue
			}
			k.log.Warn("publishing to discovery failed, will try again", "pod", k.pod.Name, "after", backoff, "error", err)
			if !k.pause(backoff) {
				return
			}
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		select {
		case <-k.bell:
		case <-k.ctx.Done():
			return
		}
	}
}

func (k *Kubernetes) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-k.ctx.Done():
		return false
	}
}

func (k *Kubernetes) apply(data Metadata) error {
	object, err := k.object(data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.ctx, applyTimeout)
	defer cancel()
	_, err = k.objects.Apply(ctx, k.pod.object(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// object is the DynamoWorkerMetadata of this pod. The pod owns it, so it goes
// when the pod goes.
func (k *Kubernetes) object(data Metadata) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode metadata: %w", err)
	}
	// Through the API machinery's decoder, which keeps whole numbers whole.
	fields := &unstructured.Unstructured{}
	wrapped := fmt.Sprintf(`{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoWorkerMetadata","spec":{"data":%s}}`, body)
	if err := fields.UnmarshalJSON([]byte(wrapped)); err != nil {
		return nil, fmt.Errorf("encode metadata: %w", err)
	}
	fields.SetName(k.pod.object())
	fields.SetNamespace(k.pod.Namespace)
	yes, no := true, false
	fields.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: k.pod.Name, UID: types.UID(k.pod.UID), Controller: &yes, BlockOwnerDeletion: &no,
	}})
	return fields, nil
}

// Watch joins EndpointSlices and metadata objects.
func (k *Kubernetes) Watch(ctx context.Context, tell func(Set)) {
	changed := make(chan struct{}, 1)
	ring := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { ring() },
		UpdateFunc: func(_, _ any) { ring() },
		DeleteFunc: func(any) { ring() },
	}
	slices, sliceController := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: k.slices, ObjectType: &discoveryv1.EndpointSlice{}, Handler: handler,
	})
	objects, objectController := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: k.metadata, ObjectType: &unstructured.Unstructured{}, Handler: handler, Transform: slim,
	})
	go sliceController.RunWithContext(ctx)
	go objectController.RunWithContext(ctx)

	last := Set{}
	first := true
	for {
		if set := k.join(slices, objects); first || !reflect.DeepEqual(set, last) {
			first, last = false, set
			tell(set)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(debounce):
		case <-ctx.Done():
			return
		}
	}
}

func follow(objects dynamic.ResourceInterface) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, o)
		},
	}
}

// slim drops what the join never looks at.
func slim(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
	}
	return object, nil
}

// join returns what ready pods have published.
func (k *Kubernetes) join(slices, objects cache.Store) Set {
	ready := map[string]bool{}
	for _, item := range slices.List() {
		slice := item.(*discoveryv1.EndpointSlice)
		for _, endpoint := range slice.Endpoints {
			if endpoint.TargetRef != nil && endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				ready[endpoint.TargetRef.Name] = true
			}
		}
	}
	var all []Metadata
	for _, item := range objects.List() {
		object := item.(*unstructured.Unstructured)
		if !ready[owner(object)] {
			continue
		}
		m, err := metadataOf(object)
		if err != nil {
			k.log.Warn("worker metadata not understood", "object", object.GetName(), "error", err)
			continue
		}
		all = append(all, m)
	}
	return Merge(all...)
}

// owner is the pod that an object speaks for; objects without one are named like
// their pod.
func owner(object *unstructured.Unstructured) string {
	if controller := metav1.GetControllerOf(object); controller != nil && controller.Kind == "Pod" {
		return controller.Name
	}
	return object.GetName()
}

func metadataOf(object *unstructured.Unstructured) (Metadata, error) {
	data, found, err := unstructured.NestedMap(object.Object, "spec", "data")
	if err != nil || !found {
		return Metadata{}, fmt.Errorf("no spec.data: %w", err)
	}
	for _, key := range []string{"endpoints", "model_cards", "event_channels"} {
		if _, ok := data[key]; !ok {
			return Metadata{}, fmt.Errorf("spec.data has no %s", key)
		}
	}
	body, err := json.Marshal(data)
	if err != nil {
		return Metadata{}, err
	}
	var m Metadata
	err = json.Unmarshal(body, &m)
	return m, err
}
