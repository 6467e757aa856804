// Package converter has v1beta1 served by a converter that stands alone, beside an
// operator for one namespace, and takes it away: what clients notice of it, and
// that the operator does not.
package converter

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

var (
	// rounds is how often the converter is replaced and killed: make converter.
	rounds  = flag.Int("rounds", 0, "how often replicas are replaced, and killed, under 50 requests a second")
	graphs  = flag.Int("graphs", 0, "how many graphs are read in both versions, to measure it")
	cluster *localenv.Cluster
)

// lab is the namespace that the operator looks after.
const lab = "lab"

var converterKey = types.NamespacedName{Namespace: installation.Namespace, Name: "dynamo-operator-converter"}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, tests of the converter are skipped (make test sets it)")
		return 0
	}
	folder, err := os.MkdirTemp("", "converter-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := start(programs, folder); err != nil {
		fmt.Println(err)
		if cluster != nil {
			fmt.Print(cluster.Log(60))
			_ = cluster.Down(context.Background()) // the first error counts
		}
		return 1
	}
	defer func() {
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}()
	code := m.Run()
	if code != 0 {
		fmt.Print(cluster.Log(60))
	}
	return code
}

func start(programs, folder string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	programs, err := filepath.Abs(programs)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		return err
	}
	cluster, err = localenv.Up(ctx, localenv.Options{
		BinDir: programs, Dir: filepath.Join(folder, "cluster"), Nodes: 2, GPUsPerNode: 8, Log: log, Args: []string{"--audit-log"},
	})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		return fmt.Errorf("%w\n%s", err, said)
	}
	if err := cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lab}}); err != nil {
		return err
	}
	install := exec.CommandContext(ctx, filepath.Join(programs, "kubectl-dynamo"), "install", "--restrict-to", lab, "--converter", "--timeout", "6m")
	install.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
	if said, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	if err := cluster.Eventually(ctx, what, try); err != nil {
		t.Fatal(err)
	}
}

// replicas of the converter that are ready, as its Deployment says.
func replicas(ctx context.Context, want int32) error {
	d := &appsv1.Deployment{}
	if err := cluster.Client.Get(ctx, converterKey, d); err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
		return fmt.Errorf("%d of %d replicas are available, %d updated", s.AvailableReplicas, s.Replicas, s.UpdatedReplicas)
	}
	return nil
}

func pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := cluster.Client.List(ctx, &list, client.InNamespace(converterKey.Namespace), client.MatchingLabels{"app.kubernetes.io/name": converterKey.Name})
	return list.Items, err
}

// TestTheConverterHasNoRights because nothing but the request is needed to convert.
func TestTheConverterHasNoRights(t *testing.T) {
	eventually(t, "two replicas", func(ctx context.Context) error { return replicas(ctx, 2) })
	list, err := pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list {
		if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
			t.Errorf("%s may have a token", pod.Name)
		}
		for _, v := range pod.Spec.Volumes {
			if v.Projected != nil || v.Name != "certificate" {
				t.Errorf("%s has volume %s", pod.Name, v.Name)
			}
		}
	}
	if len(list) != 2 {
		t.Error(errors.New("not two replicas"))
	}
}
