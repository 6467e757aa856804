package server

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// world is a namespace for one test.
type world struct {
	*testing.T
	ctx       context.Context
	give      context.CancelCauseFunc // up, when there is nothing to wait for
	namespace string
}

func newWorld(t *testing.T) world {
	t.Helper()
	t.Parallel()
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, give := context.WithCancelCause(limited)
	sum := sha1.Sum([]byte(t.Name()))
	// An operator of one namespace takes keys from a store only where the name of the
	// namespace cannot be read as another's, so without a hyphen.
	w := world{T: t, ctx: ctx, give: give, namespace: "t" + hex.EncodeToString(sum[:4])}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	return w
}

func (w world) create(object client.Object) {
	w.Helper()
	if err := cluster.Client.Create(w.ctx, object); err != nil {
		w.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

func (w world) delete(object client.Object, options ...client.DeleteOption) {
	w.Helper()
	if err := cluster.Client.Delete(w.ctx, object, options...); err != nil {
		w.Fatalf("delete %T %s: %v", object, object.GetName(), err)
	}
}

func (w world) merge(object client.Object, patch string) {
	w.Helper()
	if err := cluster.Client.Patch(w.ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatalf("patch %T %s: %v", object, object.GetName(), err)
	}
}

func (w world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// get reads an object that exists.
func get[T client.Object](w world, object T, name string) T {
	w.Helper()
	if err := cluster.Client.Get(w.ctx, w.key(name), object); err != nil {
		w.Fatal(err)
	}
	return object
}

func (w world) eventually(what string, try func(ctx context.Context) error) {
	w.Helper()
	if err := cluster.Eventually(w.ctx, what, try); err != nil {
		w.Fatal(errors.Join(context.Cause(w.ctx), err))
	}
}

// exists waits until the operator has made an object.
func exists[T client.Object](w world, object T, name string) T {
	w.Helper()
	w.eventually(fmt.Sprintf("%T %s", object, name), func(ctx context.Context) error {
		return cluster.Client.Get(ctx, w.key(name), object)
	})
	return object
}

// gone waits until an object no longer exists.
func (w world) gone(object client.Object, name string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%T %s to be gone", object, name), func(ctx context.Context) error {
		err := cluster.Client.Get(ctx, w.key(name), object)
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// says waits until a graph's condition has a reason, and returns it.
func (w world) says(name, kind, reason string) metav1.Condition {
	w.Helper()
	var condition *metav1.Condition
	w.eventually(fmt.Sprintf("%s of graph %s to be %s", kind, name, reason), func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := cluster.Client.Get(ctx, w.key(name), dgd); err != nil {
			return err
		}
		condition = meta.FindStatusCondition(dgd.Status.Conditions, kind)
		if condition == nil || condition.Reason != reason || condition.ObservedGeneration != dgd.Generation {
			return fmt.Errorf("condition %v", condition)
		}
		return nil
	})
	return *condition
}

// graph is one of services that have one replica each.
func (w world) graph(name string, services ...string) *v1alpha1.DynamoGraphDeployment {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{}
	for _, service := range services {
		dgd.Spec.Services[service] = w.service()
	}
	return dgd
}

// component is one that stands alone.
func (w world) component(name string) *v1alpha1.DynamoComponentDeployment {
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	dcd.Spec.BackendFramework = v1alpha1.BackendFrameworkVLLM
	dcd.Spec.SharedSpec = *w.service()
	return dcd
}

func (world) service() *v1alpha1.SharedSpec {
	return &v1alpha1.SharedSpec{
		ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(1)),
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "example.com/at-rest:1", Command: []string{"rest"}}},
	}
}

// operator is one that runs beside the API server.
type operator struct {
	process *exec.Cmd
	said    *output
	ended   chan struct{}
	err     error
}

// operate starts an operator for this world alone. It ends with the test.
func (w world) operate(configuration string) *operator {
	w.Helper()
	file := filepath.Join(w.TempDir(), "config.yaml")
	text := fmt.Sprintf("apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\nnamespaces: [%s]\ntenancy: {claim: false}\nlog: {format: text}\n%s", w.namespace, configuration)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	o := &operator{process: exec.Command(filepath.Join(binDir, "dynamo-operator"), "--config", file), said: &output{}, ended: make(chan struct{})}
	o.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	o.process.Stderr = o.said
	if err := o.process.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		if o.err = o.process.Wait(); o.err != nil {
			w.give(fmt.Errorf("the operator ended: %w", o.err))
		}
	}()
	w.Cleanup(func() {
		_ = o.process.Process.Kill() // it may have ended, as it should
		<-o.ended
		if w.Failed() {
			w.Logf("the operator said:\n%s", o.said)
		}
	})
	return o
}

// silent turns off the servers of an operator that nobody asks.
const silent = "server: {metricsAddress: \"\", healthAddress: \"\"}\n"

// stop asks an operator to end and waits until it has.
func (w world) stop(o *operator) {
	w.Helper()
	if err := o.process.Process.Signal(syscall.SIGTERM); err != nil {
		w.Fatal(err)
	}
	select {
	case <-o.ended:
	case <-w.ctx.Done():
		w.Fatal("the operator does not end")
	}
	if o.err != nil {
		w.Fatalf("the operator ended with %v", o.err)
	}
}

// output is what a process prints, for whoever wants to read it meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// conflicting tells whether a write of ours met another and is to be tried
// again.
func conflicting(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }
