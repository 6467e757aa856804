package e2e

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// world is a namespace for one test.
type world struct {
	*testing.T
	ctx       context.Context
	cluster   *localenv.Cluster
	namespace string
}

// newWorld makes a namespace on the cluster that most tests share.
func newWorld(t *testing.T) world {
	t.Helper()
	return newWorldOn(t, shared)
}

// newWorldOn makes a namespace on a cluster; a test that needs several tells them
// apart.
func newWorldOn(t *testing.T, cluster *localenv.Cluster, apart ...string) world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	w := world{T: t, ctx: ctx, cluster: cluster, namespace: namespaceOf(t.Name(), apart...)}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	t.Cleanup(func() {
		if t.Failed() {
			w.tell()
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
		if err := w.cluster.Client.Delete(context.Background(), namespace); err != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	return w
}

// namespaceOf is the namespace of a test.
func namespaceOf(test string, apart ...string) string {
	sum := sha1.Sum([]byte(test + strings.Join(apart, "")))
	return "t-" + hex.EncodeToString(sum[:4])
}

// tell logs what is there and what has happened, before it goes.
func (w world) tell() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	picture, err := w.cluster.Kubectl(ctx, nil, "get", "-n", w.namespace, "dgd,dcd,pods", "-o", "wide")
	w.Logf("%s%v", picture, err)
	events, err := w.cluster.Kubectl(ctx, nil, "get", "-n", w.namespace, "events", "--sort-by=.lastTimestamp")
	lines := strings.Split(strings.TrimSpace(events), "\n")
	w.Logf("%s\n%v", strings.Join(lines[max(0, len(lines)-40):], "\n"), err)
}

func (w world) create(object client.Object) {
	w.Helper()
	if err := w.cluster.Client.Create(w.ctx, object); err != nil {
		w.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// apply applies the documents of a file and returns them.
func (w world) apply(path string) []*unstructured.Unstructured {
	w.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	objects, err := w.cluster.Decode(strings.NewReader(string(text)), w.namespace)
	if err != nil {
		w.Fatalf("%s: %v", path, err)
	}
	if err := w.cluster.Apply(w.ctx, objects); err != nil {
		w.Fatalf("%s: %v", path, err)
	}
	return objects
}

func (w world) eventually(what string, try func(ctx context.Context) error) {
	w.Helper()
	if err := w.cluster.Eventually(w.ctx, what, try); err != nil {
		w.Fatal(err)
	}
}

func (w world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

func (w world) graph(name string) *v1alpha1.DynamoGraphDeployment {
	w.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := w.cluster.Client.Get(w.ctx, w.key(name), dgd); err != nil {
		w.Fatal(err)
	}
	return dgd
}

// ready waits for a graph to be ready in its current generation; when it does
// not, the picture of it says more than the error.
func (w world) ready(name string) *v1alpha1.DynamoGraphDeployment {
	w.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	err := w.cluster.Eventually(w.ctx, "graph "+name+" to be ready", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key(name), dgd); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case condition == nil || dgd.Status.ObservedGeneration != dgd.Generation:
			return errors.New("not observed")
		case condition.Status != metav1.ConditionTrue:
			return errors.New(condition.Message)
		}
		return nil
	})
	if err != nil {
		w.Fatalf("%v\n%s", err, strings.Join(tree.Lines(dgd, w.pods(context.WithoutCancel(w.ctx))), "\n"))
	}
	if dgd.Status.State != v1alpha1.GraphStateSuccessful {
		w.Fatalf("graph %s is ready but its state is %q", name, dgd.Status.State)
	}
	return dgd
}

func (w world) pods(ctx context.Context) []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// podOf is a pod of a service that is not on its way out.
func (w world) podOf(graphName, service string) corev1.Pod {
	w.Helper()
	for _, pod := range w.pods(w.ctx) {
		if pod.DeletionTimestamp == nil && pod.Labels[v1alpha1.LabelGraphName] == graphName && pod.Labels[v1alpha1.LabelComponent] == service {
			return pod
		}
	}
	w.Fatalf("no pod of %s/%s", graphName, service)
	return corev1.Pod{}
}

// frontendURL is where a graph's frontend is asked: at its Service or, if the
// user does not call it a frontend, at its pod.
func (w world) frontendURL(dgd *v1alpha1.DynamoGraphDeployment) string {
	w.Helper()
	for name, service := range dgd.Spec.SortedServices() {
		if service.ComponentType == v1alpha1.ComponentTypeFrontend {
			return fmt.Sprintf("http://%s.%s.svc:8000", graph.ServiceName(dgd.Name, name), dgd.Namespace)
		}
		if name == "Frontend" {
			return fmt.Sprintf("http://%s:8000", w.podOf(dgd.Name, name).Status.PodIP)
		}
	}
	return ""
}

// answers asks a frontend for its models and each model for an answer.
func (w world) answers(url string) {
	w.Helper()
	var models []string
	w.eventually("a model at "+url, func(ctx context.Context) (err error) {
		if models, err = w.cluster.Models(ctx, url); err == nil && len(models) == 0 {
			err = errors.New("no model yet")
		}
		return err
	})
	for _, model := range models {
		w.eventually("an answer of "+model, func(ctx context.Context) error {
			return w.cluster.Chat(ctx, url, model, "hello", 4, func(string) {})
		})
	}
}

// gone waits until an object no longer exists.
func (w world) gone(object client.Object, name string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%T %s to be gone", object, name), func(ctx context.Context) error {
		err := w.cluster.Client.Get(ctx, w.key(name), object)
		if err == nil {
			return errors.New("it is still there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
