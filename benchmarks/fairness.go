package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// The load of two tenants that a third must not suffer from.
const (
	editor, flapper = "editor", "flapper"
	editedGraphs    = 8
	editedServices  = 25
	editedInTurn    = 10
	editsPerSecond  = 50
	flappingGraphs  = 4
	flapsPerSecond  = 50
	// loadParallel is how many requests each of the two has under way at most. They
	// do not wait for answers; what is due while so many are missing is not sent. It
	// is one for each graph that is edited: more would fight over the same object,
	// which the API server then judges again and again, and lets less through.
	loadParallel = editedGraphs
	// limitFor is how long the same load goes on without an operator, as fast as the
	// API server takes it.
	limitFor = 15 * time.Second
	// loadFor is how long the load goes on before the first graph is made under it.
	loadFor = 15 * time.Second
	// sampleLimit is how long a graph is waited for.
	sampleLimit = 2 * time.Minute
)

// What is allowed of the time in a quiet cluster, once the slowdown that a bare
// client sees is divided out.
const (
	mostChildren = 2.0
	mostStatus   = 3.0
)

// times are what a tenant waits for after creating a graph.
type times struct {
	// children is until all children are there, status until the graph is Ready in
	// its generation, with Deployments that become available at once.
	children, status time.Duration
	// bare is what a bare client takes to write the same objects.
	bare time.Duration
}

// measureFairness compares the times of a tenant's new graph in a quiet cluster and
// under the load of two other tenants.
func measureFairness(ctx context.Context, o options) error {
	s, err := setUp(ctx, o.bin, false)
	if err != nil {
		return err
	}
	defer s.tearDown()
	if s.tenants, err = apart(s.cluster.Config); err != nil {
		return err
	}
	if s.operator, err = startOperator(ctx, s); err != nil {
		return err
	}
	if err := s.warmUp(ctx); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	if err := s.prepareLoad(ctx); err != nil {
		return fmt.Errorf("prepare the load: %w", err)
	}
	quiet, err := s.samples(ctx, "quiet", o.fairness)
	if err != nil {
		return err
	}
	stop := s.startLoad(ctx, editsPerSecond, flapsPerSecond)
	err = pass(ctx, loadFor)
	var loaded []times
	if err == nil {
		loaded, err = s.samples(ctx, "loaded", o.fairness)
	}
	under := stop()
	if err != nil {
		return err
	}
	s.operator.stop()
	s.operator = nil
	stop = s.startLoad(ctx, unlimited, unlimited)
	err = pass(ctx, limitFor)
	most := stop()
	if err != nil {
		return err
	}
	fmt.Printf("\nOffered: %d edits and %d flaps a second. With the operator %s.\nThe same requests as fast as the API server answers, without an operator: %s.\n", editsPerSecond, flapsPerSecond, under, most)
	return reportFairness(quiet, loaded)
}

// apart is a client with connections of its own: what others wait for on theirs is
// not what it waits for.
func apart(config *rest.Config) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.Dial = (&net.Dialer{}).DialContext // transports of one dialer are shared
	return unbound(config)
}

// unlimited is more requests a second than any API server answers.
const unlimited = 10_000

// load is what two tenants brought about.
type load struct {
	// edits and flaps came through, in a second.
	edits, flaps float64
	// operator, generator and machine are how many cores were busy.
	operator, generator, machine float64
}

func (l load) String() string {
	return fmt.Sprintf("%.0f edits and %.0f flaps a second came through; busy were %.1f cores of %d: %.1f with the operator, %.1f with this benchmark, %.1f with the rest, which is the API server and etcd",
		l.edits, l.flaps, l.machine, runtime.NumCPU(), l.operator, l.generator, max(0, l.machine-l.operator-l.generator))
}

func reportFairness(quiet, loaded []times) error {
	median := func(all []times, of func(times) time.Duration) float64 {
		var taken []time.Duration
		for _, one := range all {
			taken = append(taken, of(one))
		}
		slices.Sort(taken)
		return taken[len(taken)/2].Seconds()
	}
	row := func(what string, of func(times) time.Duration) float64 {
		q, l := median(quiet, of), median(loaded, of)
		fmt.Printf("| %s | %.2f s | %.2f s | %.2f |\n", what, q, l, l/q)
		return l / q
	}
	fmt.Printf("\nMedians of %d graphs\n\n| | quiet | loaded | ratio |\n|---|---|---|---|\n", len(quiet))
	bare := row("a bare client writes the same objects", func(t times) time.Duration { return t.bare })
	children := row("all children are there", func(t times) time.Duration { return t.children })
	status := row("the status is true", func(t times) time.Duration { return t.status })
	children, status = children/max(bare, 1), status/max(bare, 1)
	fmt.Printf("\nWith the bare client's slowdown divided out: children %.2f times (at most %.1f), status %.2f times (at most %.1f).\n",
		children, mostChildren, status, mostStatus)
	if children > mostChildren || status > mostStatus {
		return errors.New("a tenant's load delays another's graph by more than is allowed")
	}
	return nil
}

// samples makes graphs one after the other, each in a namespace of its own.
func (s *stage) samples(ctx context.Context, phase string, count int) ([]times, error) {
	var all []times
	for i := range count {
		one, err := s.sample(ctx, fmt.Sprintf("%s-%d", phase, i))
		if err != nil {
			return nil, fmt.Errorf("%s: graph %d: %w", phase, i, err)
		}
		fmt.Fprintf(os.Stderr, "%s: children %.2f s, status %.2f s, bare client %.2f s\n", phase, one.children.Seconds(), one.status.Seconds(), one.bare.Seconds())
		all = append(all, one)
	}
	return all, nil
}

func (s *stage) sample(ctx context.Context, tenant string) (one times, err error) {
	bare := tenant + "-bare"
	if err := s.namespaces(ctx, tenant, bare); err != nil {
		return one, err
	}
	limited, cancel := context.WithTimeout(ctx, sampleLimit)
	defer cancel()
	var kubelet sync.WaitGroup
	defer kubelet.Wait()
	playing, stop := context.WithCancel(ctx)
	defer stop()
	kubelet.Go(func() { s.becomeAvailable(playing, tenant) })
	graph := newGraph(0, "1")
	graph.Namespace = tenant
	begin := time.Now()
	if err := s.client.Create(limited, graph); err != nil {
		return one, err
	}
	one.children, one.status = sampleLimit, sampleLimit
	if err := s.children(limited, tenant, 1, "1"); err == nil {
		one.children = time.Since(begin)
	} else if limited.Err() == nil {
		return one, err
	}
	if err := s.ready(limited, tenant, 1); err == nil {
		one.status = time.Since(begin)
	} else if limited.Err() == nil {
		return one, err
	}
	all, err := s.objects(ctx, tenant)
	if err != nil {
		return one, err
	}
	begin = time.Now()
	for i := range all { // one after the other, as the children of one graph depend on each other
		twin, err := bareTwin(bare, &all[i])
		if err != nil {
			return one, err
		}
		if err := patch(ctx, s.client, twin); err != nil {
			return one, err
		}
	}
	one.bare = time.Since(begin)
	return one, nil
}

// bareTwin is an object for the bare client to write. What the operator would act on
// becomes a ConfigMap of the same content.
func bareTwin(namespace string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	twin := copyTo(namespace, object)
	if object.GroupVersionKind().Group != v1alpha1.SchemeGroupVersion.Group {
		return twin, nil
	}
	content, err := twin.MarshalJSON()
	if err != nil {
		return nil, err
	}
	twin.Object = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"content": string(content)}}
	twin.SetNamespace(namespace)
	twin.SetName(strings.ToLower(object.GetKind()) + "-" + object.GetName())
	return twin, nil
}

func (s *stage) namespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until so many graphs of a namespace are Ready in their generation. It
// follows them: to ask again and again would be load of its own.
func (s *stage) ready(ctx context.Context, namespace string, count int) error {
	ready := map[string]bool{}
	for {
		follow, err := s.client.Watch(ctx, &v1alpha1.DynamoGraphDeploymentList{}, client.InNamespace(namespace))
		if err != nil {
			return err
		}
		for e := range follow.ResultChan() {
			g, ok := e.Object.(*v1alpha1.DynamoGraphDeployment)
			if !ok || g.Status.ObservedGeneration != g.Generation || !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) {
				continue
			}
			if ready[g.Name] = true; len(ready) == count {
				follow.Stop()
				return nil
			}
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d of %d graphs of %s are ready: %w", len(ready), count, namespace, err)
		}
	}
}

// becomeAvailable plays the controllers that run pods: the Deployments of a
// namespace are available as soon as they are there.
func (s *stage) becomeAvailable(ctx context.Context, namespace string) {
	for ctx.Err() == nil {
		follow, err := s.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(namespace))
		if err != nil {
			continue // the sample ends by its limit
		}
		stop := context.AfterFunc(ctx, follow.Stop)
		for e := range follow.ResultChan() {
			if d, ok := e.Object.(*appsv1.Deployment); ok && d.Status.ObservedGeneration != d.Generation {
				_ = available(ctx, s.client, d, 1) // the next event brings it again
			}
		}
		stop()
	}
}

// available writes the status that a Deployment's controller would.
func available(ctx context.Context, as client.Client, d *appsv1.Deployment, replicas int32) error {
	status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"readyReplicas":%d,"availableReplicas":%d}}`,
		d.Generation, replicas, replicas)
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	named.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	return as.Status().Patch(ctx, named, client.RawPatch(types.MergePatchType, []byte(status)))
}

// prepareLoad makes the graphs of the two tenants, and has them run.
func (s *stage) prepareLoad(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := s.namespaces(ctx, editor, flapper); err != nil {
		return err
	}
	var kubelet sync.WaitGroup
	defer kubelet.Wait()
	playing, stop := context.WithCancel(ctx)
	defer stop()
	for _, namespace := range []string{editor, flapper} {
		kubelet.Go(func() { s.becomeAvailable(playing, namespace) })
	}
	for i := range editedGraphs {
		graph := newGraph(i, "1")
		graph.Namespace = editor
		for n := len(graph.Spec.Services); n < editedServices; n++ {
			graph.Spec.Services[fmt.Sprintf("decode%d", n)] = graph.Spec.Services["decode"].DeepCopy()
		}
		if err := s.client.Create(ctx, graph); err != nil {
			return err
		}
	}
	for i := range flappingGraphs {
		graph := newGraph(i, "1")
		graph.Namespace = flapper
		if err := s.client.Create(ctx, graph); err != nil {
			return err
		}
	}
	return errors.Join(s.ready(ctx, editor, editedGraphs), s.ready(ctx, flapper, flappingGraphs), s.settle(ctx))
}

// startLoad has one tenant edit and the pods of another flap, until the function
// that it returns is called, which says what came of it.
func (s *stage) startLoad(ctx context.Context, edits, flaps int) func() load {
	ctx, cancel := context.WithCancel(ctx)
	begin, before := time.Now(), s.busy()
	var all sync.WaitGroup
	var edited, flapped int
	all.Go(func() {
		edited = steadily(ctx, edits, func(i int) error { return s.edit(ctx, i) })
	})
	all.Go(func() {
		var list appsv1.DeploymentList
		if err := s.tenants.List(ctx, &list, client.InNamespace(flapper)); err != nil || len(list.Items) == 0 {
			return // it is told that nothing flapped
		}
		flapped = steadily(ctx, flaps, func(i int) error {
			n := len(list.Items)
			return available(ctx, s.tenants, &list.Items[i%n], int32(i/n%2))
		})
	})
	return func() load {
		cancel()
		all.Wait()
		took, after := time.Since(begin).Seconds(), s.busy()
		return load{
			edits: float64(edited) / took, flaps: float64(flapped) / took, operator: (after.operator - before.operator) / took,
			generator: (after.generator - before.generator) / took, machine: (after.machine - before.machine) / took,
		}
	}
}

// edit changes one variable of one service of a graph, as little as an edit can be:
// the API server reads, judges and stores the whole graph, and answers with its
// metadata.
func (s *stage) edit(ctx context.Context, i int) error {
	graph := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: editor, Name: newGraph(i%editedGraphs, "1").Name}}
	graph.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))
	change := fmt.Sprintf(`{"spec":{"services":{"decode%d":{"envs":[{"name":"EDIT","value":"%d"}]}}}}`, editedServices-1-i%editedInTurn, i)
	return s.tenants.Patch(ctx, graph, client.RawPatch(types.MergePatchType, []byte(change)), &client.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
}

// busy is how many seconds of a core were used so far: by the operator, by this
// process, and by all there are.
func (s *stage) busy() (used load) {
	if s.operator != nil {
		if u, err := s.operator.usage(); err == nil { // one that has ended uses none
			used.operator = u.cpu.Seconds()
		}
	}
	var own syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) == nil {
		used.generator = time.Duration(own.Utime.Nano() + own.Stime.Nano()).Seconds()
	}
	used.machine = machineBusy()
	return used
}

// machineBusy reads how long all cores were neither idle nor waiting for a disk.
func machineBusy() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0 // told as no core
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var hundredths float64
	for i, field := range strings.Fields(line) {
		if n, err := strconv.ParseFloat(field, 64); err == nil && i != 4 && i != 5 && i < 9 { // idle, iowait, and guests, who are counted before
			hundredths += n
		}
	}
	return hundredths / 100
}

// steadily does something so many times a second, whether or not what it asked
// before was answered, and returns how often that went well.
func steadily(ctx context.Context, perSecond int, do func(i int) error) int {
	begin := time.Now()
	var mu sync.Mutex
	var under sync.WaitGroup
	places, sent, fine, failed := make(chan struct{}, loadParallel), 0, 0, 0
	for i := 0; ; i++ {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		if err := pass(ctx, time.Until(due)); err != nil {
			break
		}
		select {
		case places <- struct{}{}:
		default:
			continue // as many as there may be are under way
		}
		n := sent
		sent++
		under.Go(func() {
			defer func() { <-places }()
			err := do(n)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				fine++
			case ctx.Err() == nil && failed < 3: // it is load, not what is measured
				failed++
				fmt.Fprintln(os.Stderr, "load:", err)
			}
		})
	}
	under.Wait()
	return fine
}
