package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

var (
	seeds = flag.Int("seeds", 100, "how many seeds to run")
	seed  = flag.Uint64("seed", 0, "run this seed alone, and tell what happened")
)

// steps is how long chaos lasts.
const steps = 120

func TestChaos(t *testing.T) {
	first, last := uint64(1), uint64(*seeds)
	if *seed != 0 {
		first, last = *seed, *seed
	}
	var writes, lives atomic.Int64
	t.Cleanup(func() {
		summary.Line(t, "chaos: %d seeds, %d writes, the operator killed %d times between two of them", last-first+1, writes.Load(), lives.Load())
	})
	const lanes = 4
	for lane := range uint64(lanes) {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			for s := first + lane; s <= last; s += lanes {
				m, problems := play(s, nil)
				writes.Add(int64(m.writes))
				lives.Add(int64(strings.Count(strings.Join(m.log, "\n"), "killed in a pass")))
				if *seed != 0 {
					t.Log(strings.Join(m.log, "\n"))
				}
				if len(problems) > 0 {
					t.Errorf("seed %d (go test ./test/chaos -seed %d):\n  %s", s, s, strings.Join(problems, "\n  "))
				}
			}
		})
	}
}

// deaf drops one write in four and says that it was done.
type deaf struct {
	client.Client
	heard int
}

func (d *deaf) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	d.heard++
	if d.heard%4 == 0 {
		return nil
	}
	return d.Client.Apply(ctx, configuration, options...)
}

// TestABrokenOperatorIsCaught builds faults in, to show that the invariants can
// fail.
func TestABrokenOperatorIsCaught(t *testing.T) {
	for name, breakIt := range map[string]func(client.Client) client.Client{
		"writes that get lost":         func(c client.Client) client.Client { return &deaf{Client: c} },
		"a report before it is true":   func(c client.Client) client.Client { return hasty{c} },
		"a write although all is well": func(c client.Client) client.Client { return busy{c} },
	} {
		t.Run(name, func(t *testing.T) {
			for s := uint64(1); s <= 100; s++ {
				if _, problems := play(s, breakIt); len(problems) > 0 {
					what, _, _ := strings.Cut(problems[0], "\n")
					summary.Line(t, "chaos: an operator with %s is caught by seed %d: %s", name, s, what)
					return
				}
			}
			t.Error("not caught within 100 seeds")
		})
	}
}

// hasty says of every graph that it is ready.
type hasty struct{ client.Client }

func (h hasty) Status() client.SubResourceWriter { return hastyStatus{h.Client.Status()} }

type hastyStatus struct{ client.SubResourceWriter }

func (h hastyStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if g, ok := object.(*v1alpha1.DynamoGraphDeployment); ok {
		before := g.DeepCopy()
		before.Status = v1alpha1.DynamoGraphDeploymentStatus{}
		for i := range g.Status.Conditions {
			g.Status.Conditions[i].Status = "True"
		}
		patch = client.MergeFrom(before)
	}
	return h.SubResourceWriter.Patch(ctx, object, patch, options...)
}

// busy reads each graph and writes a mark on it, always another.
type busy struct{ client.Client }

var marks int

func (b busy) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := b.Client.Get(ctx, key, into, options...); err != nil {
		return err
	}
	if g, ok := into.(*v1alpha1.DynamoComponentDeployment); ok {
		marks++
		marked := g.DeepCopy()
		marked.Annotations = map[string]string{"mark": fmt.Sprint(marks)}
		_ = b.Client.Patch(ctx, marked, client.MergeFrom(g)) // this is the fault
	}
	return nil
}

// play runs one seed: chaos, then calm, then a look at what has become of it.
func play(seed uint64, wrap func(client.Client) client.Client) (*machine, []string) {
	m := newMachine(seed, wrap)
	m.faults.rate = 5 + m.random.IntN(20)
	for range steps {
		if len(m.violations) > 0 {
			return m, m.violations
		}
		switch roll := m.random.IntN(20); {
		case roll == 0:
			m.act()
		case roll == 1:
			m.world()
		case roll == 3:
			m.wait()
		case roll == 2 && m.random.IntN(4) == 0:
			m.faults.kill = m.random.IntN(6)
		case roll < 11 && len(m.pending) > 0:
			m.deliver(true)
		case len(m.queue) > 0:
			m.pass(true)
		case len(m.pending) > 0:
			m.deliver(true)
		default:
			m.act()
		}
	}
	m.faults.rate, m.faults.kill = 0, -1
	if !m.settle() {
		return m, append(m.violations, "does not come to rest")
	}
	return m, slices.Concat(m.violations, m.compare(seed), m.idle())
}

// settle lets everything happen without faults, until nothing does.
func (m *machine) settle() bool {
	still := 0
	for range 800 {
		switch {
		case len(m.pending) > 0:
			m.deliver(false)
		case len(m.queue) > 0:
			m.pass(false)
		case m.world():
			still = 0
		case len(m.later) > 0 && still < 3:
			// Time passes. Who has waited in vain may go on waiting.
			still++
			m.wait()
		default:
			return true
		}
	}
	return false
}

// idle looks at everything again: nothing may be written.
func (m *machine) idle() []string {
	before := m.writes
	for _, i := range m.all() {
		m.due(i)
	}
	if !m.settle() || m.writes != before {
		return []string{fmt.Sprintf("%d writes while nothing was to be done: %s", m.writes-before, m.log[len(m.log)-1])}
	}
	return nil
}

// compare holds the world against one in which the same graphs were made
// without any trouble.
func (m *machine) compare(seed uint64) []string {
	calm := newMachine(seed, nil)
	for _, g := range m.graphs() {
		fresh := &v1alpha1.DynamoGraphDeployment{Spec: g.Spec}
		fresh.Namespace, fresh.Name = g.Namespace, g.Name
		i, err := calm.cache.identify(fresh)
		calm.must(err)
		calm.must(calm.server.change(calm.ctx, i, func() error { return calm.server.WithWatch.Create(calm.ctx, fresh) }))
	}
	if !calm.settle() {
		return []string{"even without chaos it does not come to rest"}
	}
	var problems []string
	if diff := cmp.Diff(calm.picture(), m.picture()); diff != "" {
		problems = append(problems, "the world is not what the graphs say (-wanted +is):\n"+diff)
	}
	for _, g := range m.graphs() {
		if !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) || g.Status.ObservedGeneration != g.Generation {
			problems = append(problems, g.Name+" is not reported ready in the end")
		}
	}
	return problems
}

// picture is every object by name with what makes it what it is.
func (m *machine) picture() map[string]string {
	all := map[string]string{}
	for _, i := range m.all() {
		object := m.server.truth(m.ctx, i)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		m.must(err)
		picture := map[string]any{"labels": object.GetLabels(), "spec": fields["spec"], "rules": fields["rules"]}
		text, err := json.Marshal(picture)
		m.must(err)
		all[i.String()] = string(text)
	}
	return all
}
