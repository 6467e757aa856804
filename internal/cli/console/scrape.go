package console

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// Bounds of what is asked of frontends and engines while somebody looks.
const (
	scrapePeriod  = 3 * time.Second
	scrapeTimeout = 2 * time.Second
	// scrapedAtOnce bounds how many pods are asked at a time, scrapedGraphs how many
	// graphs of a list in one period; the others have their turn in the next.
	scrapedAtOnce = 8
	scrapedGraphs = 60
	scrapedPods   = 64
	// remembered is how many points a chart shows.
	remembered = 200
)

// scraper reads the metrics of frontends, and the load of engines, through the API
// server with the caller's rights. It asks only for graphs that somebody looks at.
type scraper struct {
	source *source
	pods   rest.Interface

	mu sync.Mutex
	// watched counts who looks at a graph, all who looks at the list.
	watched map[types.NamespacedName]int
	all     int
	turn    int
	graphs  map[types.NamespacedName]*measured
}

// measured is what is known of one graph's traffic.
type measured struct {
	samples map[string]view.Sample
	points  []view.Point
	loads   map[string]view.Load
	// problem says in words why there are no points.
	problem string
}

func newScraper(s *source, pods rest.Interface) *scraper {
	return &scraper{source: s, pods: pods, watched: map[types.NamespacedName]int{}, graphs: map[types.NamespacedName]*measured{}}
}

// watch keeps a graph measured until the returned function is called; an empty key is
// every graph.
func (s *scraper) watch(key types.NamespacedName) (stop func()) {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if key.Name == "" {
			s.all += n
			return
		}
		if s.watched[key] += n; s.watched[key] == 0 {
			delete(s.watched, key)
		}
	}
	count(1)
	return func() { count(-1) }
}

func (s *scraper) run(ctx context.Context) {
	for tick := time.NewTicker(scrapePeriod); ; {
		s.round(ctx)
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

// round asks every graph that somebody looks at, once.
func (s *scraper) round(ctx context.Context) {
	wanted := s.wanted(ctx)
	if len(wanted) == 0 {
		return
	}
	var pods corev1.PodList
	if err := s.source.List(ctx, &pods); err != nil {
		return
	}
	index := view.IndexPods(pods.Items)
	var group sync.WaitGroup
	slots := make(chan struct{}, scrapedAtOnce)
	for key, closely := range wanted {
		of := index[key.Namespace+"/"+key.Name]
		group.Go(func() { s.measure(ctx, key, of, closely, slots) })
	}
	group.Wait()
	s.source.changes.notify()
}

// wanted are the graphs to ask, and whether their engines are asked as well.
func (s *scraper) wanted(ctx context.Context) map[types.NamespacedName]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[types.NamespacedName]bool{}
	if s.all > 0 {
		var graphs v1alpha1.DynamoGraphDeploymentList
		if err := s.source.List(ctx, &graphs); err == nil && len(graphs.Items) > 0 {
			for i := range min(scrapedGraphs, len(graphs.Items)) {
				wanted[client.ObjectKeyFromObject(&graphs.Items[(s.turn+i)%len(graphs.Items)])] = false
			}
			if s.turn += scrapedGraphs; s.turn >= len(graphs.Items) {
				s.turn = 0
			}
		}
	}
	for key := range s.watched {
		wanted[key] = true
	}
	return wanted
}

// measure asks the pods of one graph.
func (s *scraper) measure(ctx context.Context, key types.NamespacedName, pods []corev1.Pod, closely bool, slots chan struct{}) {
	now := measured{samples: map[string]view.Sample{}, loads: map[string]view.Load{}}
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range pods[:min(scrapedPods, len(pods))] {
		p := &pods[i]
		role := graph.RoleOf(p.Labels[v1alpha1.LabelComponentType])
		if view.PodState(*p).Tone != view.Good || role != graph.RoleFrontend && (!closely || !role.RunsEngine()) {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if role == graph.RoleFrontend {
				sample, err := s.frontend(ctx, p)
				mu.Lock()
				defer mu.Unlock()
				if now.samples[p.Name] = sample; err != nil {
					delete(now.samples, p.Name)
					now.problem = inWords(err, p)
				}
				return
			}
			if load, ok, err := s.engine(ctx, p); err == nil && ok {
				mu.Lock()
				defer mu.Unlock()
				now.loads[p.Name] = load
			}
		})
	}
	group.Wait()
	s.note(key, now)
}

func inWords(err error, p *corev1.Pod) string {
	if apierrors.IsForbidden(err) {
		return "You may not get pods/proxy in namespace " + p.Namespace + ", through which the frontends' metrics are read."
	}
	return "Metrics of " + p.Name + " cannot be read: " + err.Error()
}

func (s *scraper) note(key types.NamespacedName, now measured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.graphs[key]
	if before == nil {
		before = &measured{}
	}
	now.points = before.points
	if point, ok := view.Between(before.samples, now.samples); ok {
		now.points = append(now.points, point)
		now.points = now.points[max(0, len(now.points)-remembered):]
	}
	s.graphs[key] = &now
}

// of is what is known of one graph's traffic. What it returns is not changed later.
func (s *scraper) of(key types.NamespacedName) measured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.graphs[key]; m != nil {
		return *m
	}
	return measured{}
}

func (s *scraper) traffic(namespace, name string) view.Traffic {
	m := s.of(types.NamespacedName{Namespace: namespace, Name: name})
	t := view.TrafficOf(m.points)
	t.Why = m.problem
	return t
}

func (s *scraper) frontend(ctx context.Context, p *corev1.Pod) (view.Sample, error) {
	text, err := s.metrics(ctx, p, pod.PortHTTP)
	if err != nil {
		return view.Sample{}, err
	}
	return view.ParseFrontend(bytes.NewReader(text), time.Now())
}

func (s *scraper) engine(ctx context.Context, p *corev1.Pod) (view.Load, bool, error) {
	text, err := s.metrics(ctx, p, pod.PortSystem)
	if err != nil {
		return view.Load{}, false, err
	}
	return view.ParseEngine(bytes.NewReader(text))
}

func (s *scraper) metrics(ctx context.Context, p *corev1.Pod, port int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	text, err := s.pods.Get().Namespace(p.Namespace).Resource("pods").Name(p.Name + ":" + strconv.Itoa(port)).SubResource("proxy").Suffix("metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("get metrics of %s/%s: %w", p.Namespace, p.Name, err)
	}
	return text, nil
}
