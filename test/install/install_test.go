// Package install installs the operator by every tool and for every scope, and where
// something is wrong reads what is said.
package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// pullError makes a node of the local cluster fail to pull the images of a pod.
const pullError = "localcluster.dynamo/image-pull-error"

func TestAnImageThatCannotBePulledIsTheCauseThatIsTold(t *testing.T) {
	cluster, programs := up(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	plugin := func(args ...string) (string, error) {
		command := exec.CommandContext(ctx, filepath.Join(programs, "kubectl-dynamo"), args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
		text, err := command.CombinedOutput()
		return string(text), err
	}
	annotate(ctx, t, cluster, `{"metadata":{"annotations":{"`+pullError+`":"true"}}}`)

	text, err := plugin("install", "--registry", "registry.example/team", "--timeout", "45s")
	if err == nil {
		t.Fatalf("installed:\n%s", text)
	}
	for _, want := range []string{"wait for the operator to be ready", "cause: pod dynamo-system/", "ImageNotFound", "registry.example/team/dynamo-operator:", "make push"} {
		if !strings.Contains(text, want) {
			t.Errorf("install does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "rate limiter") {
		t.Errorf("install speaks of its own client:\n%s", text)
	}

	text, err = plugin("doctor")
	if err == nil || !strings.Contains(text, "ImageNotFound") || strings.Contains(text, "logs deploy/") {
		t.Errorf("doctor: %v\n%s", err, text)
	}

	annotate(ctx, t, cluster, `{"metadata":{"annotations":{"`+pullError+`":null}}}`)
	if text, err = plugin("install", "--registry", "registry.example/team", "--timeout", "5m"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	told(ctx, t, cluster)
}

// up starts a cluster of the test's own, from the programs whose folder it returns.
func up(t *testing.T, args ...string) (*localenv.Cluster, string) {
	t.Helper()
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		t.Skip("PLAYGROUND_BIN is not set: no programs to run a cluster from (make test sets it)")
	}
	programs, err := filepath.Abs(programs)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "localcluster.log"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := localenv.Up(t.Context(), localenv.Options{BinDir: programs, Dir: filepath.Join(dir, "cluster"), Nodes: 2, GPUsPerNode: 8, Log: log, Args: args})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		t.Fatalf("%v\n%s", err, said)
	}
	t.Cleanup(func() {
		if err := cluster.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return cluster, programs
}

// annotate changes the template of the operator's Deployment, which it makes if it
// is not there.
func annotate(ctx context.Context, t *testing.T, cluster *localenv.Cluster, template string) {
	t.Helper()
	key := types.NamespacedName{Namespace: installation.Namespace, Name: installation.Deployment}
	d := &appsv1.Deployment{}
	if err := cluster.Client.Get(ctx, key, d); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		shipped, err := installation.Operator()
		if err != nil {
			t.Fatal(err)
		}
		var first []*unstructured.Unstructured
		for _, object := range shipped {
			switch object.GetKind() {
			case "Deployment": // no pods until it is installed
				if err := unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas"); err != nil {
					t.Fatal(err)
				}
				first = append(first, object)
			case "Namespace":
				first = append(first, object)
			}
		}
		if err := cluster.Apply(ctx, first); err != nil {
			t.Fatal(err)
		}
	}
	d.Namespace, d.Name = key.Namespace, key.Name
	if err := cluster.Client.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":`+template+`}}`))); err != nil {
		t.Fatal(err)
	}
}

// told checks that every image of the installation is in the registry.
func told(ctx context.Context, t *testing.T, cluster *localenv.Cluster) {
	t.Helper()
	d, c := &appsv1.Deployment{}, &corev1.ConfigMap{}
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: installation.Namespace, Name: installation.Deployment}, d); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: installation.Namespace, Name: "dynamo-operator-config"}, c); err != nil {
		t.Fatal(err)
	}
	if got := d.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(got, "registry.example/team/dynamo-operator:") {
		t.Errorf("the operator is %s", got)
	}
	if !strings.Contains(c.Data["config.yaml"], "image: registry.example/team/dynamo-profiler:") {
		t.Errorf("the profiler is another:\n%s", c.Data["config.yaml"])
	}
}
