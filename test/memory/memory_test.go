package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

const (
	// most is how many MiB a tenant may cost the operator.
	most = 50
	// flooded is the tenant's namespace.
	flooded = "flooded"
	// largest is what the API server takes as the data of a Secret or ConfigMap.
	largest = 1<<20 - 512
	// writers is how many requests the tenant has under way.
	writers = 4
)

// count is how many Secrets, and as many ConfigMaps, the tenant makes.
func count() int {
	if *measure {
		return 700
	}
	return 80
}

// starts is how often an operator is started into the same: one start says little
// about how long they take.
func starts() int {
	if *measure {
		return 3
	}
	return 1
}

// TestATenantCannotFillTheOperatorsMemory: pull secrets and labelled ConfigMaps of
// 1 MiB each, made while the operator runs and there when it starts, cost it less
// than 50 MiB at its peak, with a graph in their namespace; and without the guard
// much more, or the test would show nothing.
func TestATenantCannotFillTheOperatorsMemory(t *testing.T) {
	program := filepath.Join(binDir, "dynamo-operator")
	namespace(t, flooded)
	var calm cost
	for _, c := range []struct {
		name, when  string
		environment []string
		// flood makes the objects when the operator has started, full says that
		// they are there then, and graph that one of the tenant's is beside them.
		flood, full, graph bool
	}{
		{name: "calm", when: "without them"},
		{name: "running", when: "made while it runs", flood: true},
		{name: "starting", when: "there when it starts", full: true},
		{name: "beside", when: "there when it starts, with a graph in their namespace", full: true, graph: true},
		{name: "listing", when: "there when it starts, with a graph, and listed instead of streamed", full: true, graph: true, environment: []string{"KUBE_FEATURE_WatchListClient=false"}},
	} {
		var all []cost
		for i := range starts() {
			if c.flood && i > 0 {
				break // they are made once
			}
			if c.graph {
				create(t, flooded)
			}
			o := launch(t, program, c.environment...)
			all = append(all, o.round(fmt.Sprintf("quiet-%s-%d", c.name, i), c.flood, c.full))
			o.stop()
		}
		got := median(all)
		summary.Line(t, "memory: %d Secrets and %d ConfigMaps of 1 MiB in a namespace, %s: peak %d MiB; a graph elsewhere is ready %s after the operator's start, one in that namespace after %s",
			count(), count(), c.when, got.peak, got.elsewhere, got.here)
		switch {
		case c.name == "calm":
			calm = got
		case got.peak-calm.peak >= most:
			t.Errorf("objects %s: %d MiB became %d", c.when, calm.peak, got.peak)
		}
		if c.full {
			summary.Line(t, "memory: %s: the graph elsewhere takes %.2f times as long as without them", c.when, got.elsewhere.Seconds()/calm.elsewhere.Seconds())
		}
	}

	// The attack, seen to succeed.
	o := launch(t, unguarded(t), "DYNAMO_GUARDS_OFF="+string(guard.Outlines))
	create(t, flooded)
	eventually(t, "memory to be filled without the guard", func(context.Context) error {
		if peak := o.peak(); peak-calm.peak < count() {
			return fmt.Errorf("%d MiB became %d", calm.peak, peak)
		}
		return nil
	})
	summary.Line(t, "memory: without the guard: peak %d MiB", o.peak())
}

// cost is what a start of an operator came to.
type cost struct {
	// elsewhere and here are from its start until a graph is ready, in another
	// namespace and in the tenant's.
	elsewhere, here time.Duration
	peak            int
}

// median is the middle of several costs by their times, with the largest peak.
func median(all []cost) cost {
	slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(a.elsewhere, b.elsewhere) })
	middle := all[len(all)/2]
	for _, one := range all {
		middle.peak = max(middle.peak, one.peak)
	}
	return middle
}

// round makes a graph in a namespace of its own as soon as the operator is started
// and one in the tenant's, and tells how long each took to be ready.
func (o *operator) round(other string, fill, full bool) (c cost) {
	o.Helper()
	namespace(o.T, other)
	create(o.T, other)
	ready(o.T, other)
	c.elsewhere = time.Since(o.began).Round(100 * time.Millisecond)
	if fill {
		flood(o.T)
	}
	create(o.T, flooded)
	ready(o.T, flooded)
	c.here = time.Since(o.began).Round(100 * time.Millisecond)
	if fill || full {
		canary(o.T)
	}
	if fill {
		// Another graph is made while all that is there.
		namespace(o.T, other+"-then")
		begin := time.Now()
		create(o.T, other+"-then")
		ready(o.T, other+"-then")
		summary.Line(o.T, "memory: a graph elsewhere that is made then is ready after %s", time.Since(begin).Round(100*time.Millisecond))
		remove(o.T, other+"-then")
	}
	for _, in := range []string{other, flooded} {
		remove(o.T, in)
	}
	c.peak = o.peak()
	return c
}

// canary waits until the operator has seen the tenant's last Secret.
func canary(t *testing.T) {
	t.Helper()
	eventually(t, "the last Secret to be used", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: flooded, Name: "quickstart-decode"}, d); err != nil {
			return err
		}
		if !slices.Contains(d.Spec.Template.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "last"}) {
			return errors.New("it is not")
		}
		return nil
	})
}

// flood makes the tenant's objects. The ConfigMaps claim to be of a graph and of a
// request; every second Secret has one large credential, the others have many.
func flood(t *testing.T) {
	t.Helper()
	data := strings.Repeat("x", largest)
	one := `{"auths":{"registry.example":{"auth":"` + data[:largest-64] + `"}}}`
	var many strings.Builder
	many.WriteString(`{"auths":{`)
	for i := 0; many.Len() < largest-100; i++ {
		fmt.Fprintf(&many, `"%05d.%s.example":{},`, i, strings.Repeat("h", 30))
	}
	many.WriteString(`"z.example":{}}}`)
	objects := make(chan client.Object)
	failed := make(chan error, writers)
	for range writers {
		go func() {
			var err error
			for object := range objects {
				err = errors.Join(err, cluster.Eventually(t.Context(), object.GetName()+" to be made", func(ctx context.Context) error {
					return client.IgnoreAlreadyExists(cluster.Client.Create(ctx, object)) // a busy etcd may have taken it and not said so
				}))
			}
			failed <- err
		}()
	}
	for i := range count() {
		objects <- &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: flooded, Name: fmt.Sprintf("c-%03d", i), Labels: map[string]string{
				v1alpha1.LabelGraphName: "quickstart", v1alpha1.LabelRequestName: "quickstart",
			}},
			Data: map[string]string{"x": data},
		}
		config := one
		if i%2 == 1 {
			config = many.String()
		}
		objects <- pullSecret(fmt.Sprintf("s-%03d", i), config)
	}
	close(objects)
	for range writers {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Client.Create(t.Context(), pullSecret("last", `{"auths":{"nvcr.io":{}}}`)); err != nil {
		t.Fatal(err)
	}
}

func pullSecret(name, config string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: flooded, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)},
	}
}

func namespace(t *testing.T, name string) {
	t.Helper()
	if err := cluster.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// create makes the quickstart's graph.
func create(t *testing.T, in string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.Decode(strings.NewReader(string(text)), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
}

// ready waits until the quickstart's graph is.
func ready(t *testing.T, in string) {
	t.Helper()
	eventually(t, "the graph in "+in+" to be ready", func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: in, Name: "quickstart"}, dgd); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || condition.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %v", condition)
		}
		return nil
	})
}

// remove deletes the graph and waits for its pods to go, so that the next has
// room.
func remove(t *testing.T, in string) {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "quickstart"}}
	if err := cluster.Client.Delete(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods in "+in+" to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := cluster.Client.List(ctx, &pods, client.InNamespace(in)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are left", len(pods.Items))
		}
		return nil
	})
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if err := cluster.Eventually(ctx, what, try); err != nil {
		t.Fatal(err)
	}
}
