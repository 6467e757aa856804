package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

const (
	namespace = "bench"
	elsewhere = "warm-up"
	services  = 3
	// parallel is how many requests the bare client has under way; as many as
	// the operator may have with its defaults.
	parallel = 16
)

// stage is a fresh cluster, with or without an operator as a process beside it.
type stage struct {
	cluster  *localenv.Cluster
	client   client.WithWatch
	http     *http.Client
	operator *process
	// tenants is a client for the load of others.
	tenants client.WithWatch
	audit   auditlog.Log
	dir     string
	bin     string
	// program is the operator, if not the one among the programs, and off what it
	// leaves out.
	program string
	off     []string
}

// measure runs all phases for a number of graphs.
func measure(ctx context.Context, o options, size scale) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Minute)
	defer cancel()
	r, all, err := operate(ctx, o, size)
	if err != nil {
		return r, err
	}
	if r.Posted, err = limit(ctx, o.bin, size, all, post); err != nil {
		return r, fmt.Errorf("bare client: post: %w", err)
	}
	if size.graphs > 1000 {
		return r, nil // it would take as long again and say nothing new
	}
	if r.Patched, err = limit(ctx, o.bin, size, all, patch); err != nil {
		return r, fmt.Errorf("bare client: server-side apply: %w", err)
	}
	return r, nil
}

// operate has the operator go through all phases, and returns the graphs with
// what they own as they are after the change.
func operate(ctx context.Context, o options, size scale) (result, []unstructured.Unstructured, error) {
	r, count := result{scale: size}, size.graphs
	s, err := setUp(ctx, o.bin, size.controllers)
	if err != nil {
		return r, nil, err
	}
	defer s.tearDown()
	if s.operator, err = startOperator(ctx, s); err != nil {
		return r, nil, err
	}
	if err := s.warmUp(ctx); err != nil {
		return r, nil, fmt.Errorf("warm up: %w", err)
	}
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"create", func(ctx context.Context) error { return s.create(ctx, count) }},
		{"settle", s.settle},
		{"idle", func(ctx context.Context) error { return pass(ctx, o.idle) }},
		{"change", func(ctx context.Context) error { return s.change(ctx, count) }},
		{"settle again", s.settle},
		{"restart", func(ctx context.Context) error { return s.restart(ctx, o.idle) }},
	} {
		p, err := s.phase(ctx, phase.name, phase.do)
		if err != nil {
			return r, nil, fmt.Errorf("%s: %w", phase.name, err)
		}
		fmt.Fprintf(os.Stderr, "%d graphs, %s: %.1f s\n", count, phase.name, p.Wall.Seconds()) // a long run shows that it goes on
		r.Phases = append(r.Phases, p)
	}
	all, err := s.objects(ctx, namespace)
	if err != nil {
		return r, nil, fmt.Errorf("list what was made: %w", err)
	}
	p, err := s.phase(ctx, "delete", func(ctx context.Context) error {
		if size.controllers {
			return s.delete(ctx)
		}
		return s.collect(ctx, all)
	})
	if err != nil {
		return r, nil, fmt.Errorf("delete: %w", err)
	}
	r.Phases = append(r.Phases, p)
	return r, all, nil
}

// quiet is how long the operator must write nothing to count as settled; longer
// than it gathers changes for.
const quiet = 5 * time.Second

// settle waits for the last reports on what is already there.
func (s *stage) settle(ctx context.Context) error {
	for {
		from, err := s.audit.End()
		if err != nil {
			return err
		}
		if err := pass(ctx, quiet); err != nil {
			return err
		}
		seen, err := s.since(from)
		if err != nil {
			return err
		}
		if seen.writes() == 0 {
			return nil
		}
	}
}

// pass lets time pass, which is what an idle operator is measured by.
func pass(ctx context.Context, how time.Duration) error {
	select {
	case <-time.After(how):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func setUp(ctx context.Context, bin string, controllers bool) (*stage, error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "cluster.log"))
	if err != nil {
		return nil, err
	}
	c, err := localenv.Up(ctx, localenv.Options{
		BinDir: bin, Dir: filepath.Join(dir, "cluster"), Nodes: 1, GPUsPerNode: 8, ServerOnly: !controllers, Log: log, Args: []string{"--audit-log"},
	})
	if err != nil {
		return nil, err
	}
	s := &stage{cluster: c, dir: dir, bin: bin, audit: auditlog.Of(c.Kubeconfig)}
	if s.client, err = unbound(c.Config); err != nil {
		return nil, errors.Join(err, c.Down(ctx))
	}
	if s.http, err = rest.HTTPClientFor(c.Config); err != nil {
		return nil, errors.Join(err, c.Down(ctx))
	}
	if err := c.InstallAPI(ctx); err != nil {
		return nil, errors.Join(err, c.Down(ctx))
	}
	for _, name := range []string{namespace, elsewhere} {
		if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, errors.Join(err, c.Down(ctx))
		}
	}
	return s, nil
}

// warmUp has one graph made elsewhere: an API server reads its schemas when they
// are first needed, which is nobody's work in particular.
func (s *stage) warmUp(ctx context.Context) error {
	first := newGraph(0, "1")
	first.Namespace = elsewhere
	if err := s.client.Create(ctx, first); err != nil {
		return err
	}
	if err := s.children(ctx, elsewhere, 1, "1"); err != nil {
		return err
	}
	return s.settle(ctx)
}

// unbound is a client that the server alone slows down.
func unbound(config *rest.Config) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "bare-client"
	return client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
}

func (s *stage) tearDown() {
	if s.operator != nil {
		s.operator.stop()
	}
	_ = s.cluster.Down(context.Background()) // the folder goes anyway
	_ = os.RemoveAll(s.dir)
}

// create applies the graphs and waits until all their children are there.
func (s *stage) create(ctx context.Context, count int) error {
	err := each(ctx, count, func(ctx context.Context, i int) error { return s.client.Create(ctx, newGraph(i, "1")) })
	if err != nil {
		return err
	}
	return s.children(ctx, namespace, count, "1")
}

// change gives every graph another image, and waits until workloads have it.
func (s *stage) change(ctx context.Context, count int) error {
	err := each(ctx, count, func(ctx context.Context, i int) error {
		before := newGraph(i, "1")
		return s.client.Patch(ctx, newGraph(i, "2"), client.MergeFrom(before))
	})
	if err != nil {
		return err
	}
	return s.children(ctx, namespace, count, "2")
}

// restart ends the operator without a word and watches the next one settle in.
func (s *stage) restart(ctx context.Context, idle time.Duration) error {
	s.operator.stop()
	var err error
	if s.operator, err = startOperator(ctx, s); err != nil {
		return err
	}
	return pass(ctx, idle)
}

func (s *stage) delete(ctx context.Context) error {
	if err := s.client.DeleteAllOf(ctx, &v1alpha1.DynamoGraphDeployment{}, client.InNamespace(namespace)); err != nil {
		return err
	}
	return s.gone(ctx)
}

// collect deletes graphs and then what they own, as the garbage collector of a
// whole control plane would.
func (s *stage) collect(ctx context.Context, all []unstructured.Unstructured) error {
	err := each(ctx, len(all), func(ctx context.Context, i int) error { return s.client.Delete(ctx, &all[i]) })
	if err != nil {
		return err
	}
	return s.gone(ctx)
}

func (s *stage) gone(ctx context.Context) error {
	return s.until(ctx, "nothing to be left", func(ctx context.Context) error {
		for _, kind := range childKinds {
			n, err := s.count(ctx, namespace, kind)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d %s are left", n, kind.Kind)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *stage) until(ctx context.Context, what string, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, ctx.Err(), err)
		}
	}
}

// each does something for every number below n, several at once.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// count is how many objects of a kind belong to somebody.
func (s *stage) count(ctx context.Context, namespace string, kind schema.GroupVersionKind) (int, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := s.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) {
			return 0, nil
		}
		return 0, err
	}
	n := 0
	for i := range list.Items {
		if metav1.GetControllerOfNoCopy(&list.Items[i]) != nil {
			n++
		}
	}
	return n, nil
}
