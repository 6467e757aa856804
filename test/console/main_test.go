// Package console holds the console against a cluster that runs: what its pages say is
// what the API server says, they change as the cluster does, outlive a restart of the
// API server, and ask for no change. What each page looks like is tested beside it, in
// internal/cli/console.
package console

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
)

var cluster *localenv.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// binDir holds the programs of this repository.
var binDir string

func run(m *testing.M) int {
	binDir = os.Getenv("PLAYGROUND_BIN")
	if binDir == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, tests of the console on one are skipped (make test sets it)")
		return 0
	}
	if *many {
		return m.Run() // it starts a cluster of its own
	}
	folder, err := os.MkdirTemp("", "console-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	stop, err := start(folder)
	defer stop()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		fmt.Print(cluster.Log(20))
	}
	return code
}

// namespace is where the graphs are.
const namespace = "lab"

// start runs a cluster with the operator and two graphs: the quickstart, and one whose
// worker's image does not exist.
func start(folder string) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		return func() {}, err
	}
	cluster, err = localenv.Up(ctx, localenv.Options{
		BinDir: binDir, Dir: filepath.Join(folder, "cluster"), Nodes: 2, GPUsPerNode: 8, Log: log, Args: []string{"--audit-log"},
	})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		return func() {}, fmt.Errorf("%w\n%s", err, said)
	}
	cluster.Client = retryclient.Client(cluster.Client)
	stop = func() {
		if err := cluster.Down(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	if err := errors.Join(cluster.InstallAPI(ctx), install(ctx)); err != nil {
		return stop, err
	}
	if err := cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return stop, err
	}
	quickstart, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		return stop, err
	}
	objects, err := cluster.Decode(strings.NewReader(string(quickstart)+"\n---\n"+broken), namespace)
	if err != nil {
		return stop, err
	}
	return stop, cluster.Apply(ctx, objects)
}

// install runs the operator; for a walk with what is off by default.
func install(ctx context.Context) error {
	if *pictures == "" {
		return cluster.InstallOperator(ctx)
	}
	objects, err := installation.Small()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" {
			if err := installation.Configure(object, map[string]any{
				"rollout": map[string]any{"generations": true}, "activator": map[string]any{"enabled": true},
				"scaling": map[string]any{"gpus": 64, "namespaces": map[string]any{namespace: 32}},
			}); err != nil {
				return err
			}
		}
	}
	installer := installation.Installer{Client: cluster.Client, Owner: "localenv"}
	if err := installer.Operator(ctx, objects); err != nil {
		return err
	}
	may := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "activation"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-activation"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: localenv.OperatorKey.Namespace, Name: localenv.OperatorKey.Name}},
	}
	if err := cluster.Client.Create(ctx, may); err != nil {
		return err
	}
	return installer.Ready(ctx)
}

// The graphs by name.
const (
	healthy = "quickstart"
	ailing  = "broken"
)

const broken = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: broken}
spec:
  backendFramework: vllm
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec: {mainContainer: {image: "vllm-runtime:1"}}
    decode:
      componentType: worker
      replicas: 2
      resources: {limits: {gpu: "1"}}
      extraPodMetadata: {annotations: {localcluster.dynamo/image-pull-error: "true"}}
      extraPodSpec: {mainContainer: {image: "vllm-runtime:missing", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B]}}
`
