package converter

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
)

const alpha, beta = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"

// object is one of the lab's, from a literal.
func object(version, kind, name, spec string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(lab)
	o.SetName(name)
	if spec != "" {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
			panic(err) // a literal of a test
		}
		o.Object["spec"] = fields
	}
	return o
}

// graph is one frontend, which starts at once; written as one of the versions.
func graph(version, name string, replicas int) *unstructured.Unstructured {
	if version == alpha {
		return object(alpha, "DynamoGraphDeployment", name, fmt.Sprintf(`{services: {Frontend: {componentType: frontend, replicas: %d, extraPodSpec: {mainContainer: {image: "example/runtime:0.8.0"}}}}}`, replicas))
	}
	return object(beta, "DynamoGraphDeployment", name, fmt.Sprintf(`{components: [{name: Frontend, type: frontend, replicas: %d, podTemplate: {spec: {containers: [{name: main, image: "example/runtime:0.8.0"}]}}}]}`, replicas))
}

// request is one that a client made.
type request struct {
	version, verb string
	begun         time.Time
	err           error
}

// traffic reads and writes in both versions, fifty times a second.
type traffic struct {
	mu   sync.Mutex
	done []request
	stop context.CancelFunc
	all  sync.WaitGroup
}

const perSecond = 50

// subjects are the graphs that are read and written, some of each version. Writes of one
// object that meet are tried again by the API server, each with its conversions: of a
// few objects, that is all that it would be busy with once it is slow.
func subjects(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	for version, prefix := range map[string]string{alpha: "traffic-alpha", beta: "traffic-beta"} {
		for n := range 8 {
			name := fmt.Sprintf("%s-%d", prefix, n)
			if err := client.IgnoreAlreadyExists(cluster.Client.Create(t.Context(), graph(version, name, 0))); err != nil {
				t.Fatal(err)
			}
			names[version] = append(names[version], name)
		}
	}
	return names
}

func newTraffic(t *testing.T) *traffic {
	t.Helper()
	names := subjects(t)
	ctx, stop := context.WithCancel(t.Context())
	f := &traffic{stop: stop}
	f.all.Go(func() {
		tick := time.NewTicker(time.Second / perSecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			// Each version reads and writes objects that were written as either.
			version, of, reads := []string{alpha, beta}[n%2], names[[]string{alpha, beta}[n/2%2]], n/4%2 == 0
			name := of[n/8%len(of)]
			f.all.Go(func() { f.ask(ctx, version, name, reads, n) })
		}
	})
	t.Cleanup(func() { f.end() })
	return f
}

func (f *traffic) ask(ctx context.Context, version, name string, reads bool, n int) {
	r := request{version: version, verb: "write", begun: time.Now()}
	o := object(version, "DynamoGraphDeployment", name, "")
	if reads {
		r.verb = "read"
		r.err = cluster.Client.Get(ctx, types.NamespacedName{Namespace: lab, Name: name}, o)
	} else {
		r.err = cluster.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"lab/%d":"%d"}}}`, n%8, n)))
	}
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, r)
}

// end stops the traffic and returns all of it.
func (f *traffic) end() []request {
	f.stop()
	f.all.Wait()
	return f.done
}

// more waits for further requests.
func (f *traffic) more(t *testing.T, n int) {
	t.Helper()
	count := func() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.done) }
	want := count() + n
	eventually(t, fmt.Sprintf("%d requests", n), func(context.Context) error {
		if got := count(); got < want {
			return fmt.Errorf("%d are missing", want-got)
		}
		return nil
	})
}

// failures counts those of a version, and tells one.
func failures(all []request, version string) (n int, last error) {
	for _, r := range all {
		if r.version == version && r.err != nil {
			n, last = n+1, fmt.Errorf("%s: %w", r.verb, r.err)
		}
	}
	return n, last
}

// answered holds when v1beta1 can be read and written. The API server has a cache for
// each version, which begins anew after conversions have failed: writes wait for it
// longer than reads.
func answered(ctx context.Context) error {
	o := object(beta, "DynamoGraphDeployment", "traffic-alpha-0", "")
	if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	return cluster.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"lab/answered":"yes"}}}`)))
}

// unanswered holds when it cannot.
func unanswered(ctx context.Context) error {
	if err := answered(ctx); !apply.ConversionFailed(err) {
		return fmt.Errorf("v1beta1 is read and written: %w", err)
	}
	return nil
}
