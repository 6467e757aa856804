// Package webhook runs the operator with two replicas in a cluster of its own
// and asks the API server, which asks them: what is admitted, what happens to
// requests when replicas and certificates come and go, and who may do what.
package webhook

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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/rbacaudit"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
)

var (
	// measure runs what takes minutes and tells figures: make rotation.
	measure = flag.Bool("measure", false, "run the measurements, which take minutes")
	// failurePolicy is what is registered: whether what nobody could judge is
	// refused. It is, so that no test passes because nobody was asked.
	failurePolicy = flag.String("failure-policy", "Fail", "Fail or Ignore")
	// keepUsage is where make rights wants to know what was done in this run.
	keepUsage = flag.String("rights", "", "`folder` to leave in what accounts did, for the proof of their rights")

	cluster *localenv.Cluster
	folder  string
	// impatient asks once; cluster.Client asks until it is answered.
	impatient client.Client
)

const replicas = 2

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		fmt.Println("PLAYGROUND_BIN is not set: no programs to run a cluster from, tests of webhooks are skipped (make test sets it)")
		return 0
	}
	var err error
	if folder, err = os.MkdirTemp("", "webhook-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := start(programs); err != nil {
		fmt.Println(err)
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
	if *keepUsage != "" {
		if err := farewell(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return code
}

// farewell ends the operator as an uninstallation would: the last replica takes
// its registration along. Then what was done is kept.
func farewell() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = localenv.OperatorKey.Namespace, localenv.OperatorKey.Name
	if err := cluster.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))); err != nil {
		return err
	}
	err := cluster.Eventually(ctx, "the registration to go with the last replica", func(ctx context.Context) error {
		err := cluster.Client.Get(ctx, types.NamespacedName{Name: "dynamo-operator-validating"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return rbacaudit.Keep(*keepUsage, "webhook", []string{filepath.Join(folder, "cluster", "logs", "audit.log")})
}

func start(programs string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		return err
	}
	cluster, err = localenv.Up(ctx, localenv.Options{
		BinDir: programs, Dir: filepath.Join(folder, "cluster"), Nodes: 2, Log: log, Args: []string{"--audit-log"},
	})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		return fmt.Errorf("%w\n%s", err, said)
	}
	impatient, cluster.Client = cluster.Client, retryclient.Client(cluster.Client)
	if err := cluster.InstallAPI(ctx); err != nil {
		return err
	}
	return installOperator(ctx)
}

// settings go over the configuration that is shipped. What is measured is what is
// shipped: nothing here gives a replica that ends, or an API server that waits, more
// time. Certificates live for a minute if that is what is measured.
func settings() string {
	text := "webhook: {enabled: true, failurePolicy: " + *failurePolicy + "}\nnetworkPolicy: {enabled: true}\n"
	if *measure || *keepUsage != "" {
		text += "certificate: {validity: 60s, authorityValidity: 120s}\n"
	}
	return text
}

// installOperator installs what is shipped, with two replicas.
func installOperator(ctx context.Context) error {
	objects, err := installation.Operator()
	if err != nil {
		return err
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			if err := unstructured.SetNestedField(object.Object, int64(replicas), "spec", "replicas"); err != nil {
				return err
			}
		case "ConfigMap":
			if err := configure(object, settings()); err != nil {
				return err
			}
		}
	}
	if err := cluster.Apply(ctx, objects); err != nil {
		return err
	}
	return cluster.Eventually(ctx, "the webhooks to be registered by "+fmt.Sprint(replicas)+" replicas", func(ctx context.Context) error {
		if err := allReady(ctx); err != nil {
			return err
		}
		if err := servesBeta(ctx); err != nil {
			return err
		}
		return cluster.Client.Get(ctx, types.NamespacedName{Name: "dynamo-operator-validating"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	})
}

// servesBeta holds when graphs can be read as v1beta1.
func servesBeta(ctx context.Context) error {
	graphs := &unstructured.UnstructuredList{}
	graphs.SetAPIVersion("nvidia.com/v1beta1")
	graphs.SetKind("DynamoGraphDeploymentList")
	return impatient.List(ctx, graphs)
}

// configure adds settings to the operator's configuration, in place of those of
// the same name.
func configure(object *unstructured.Unstructured, text string) error {
	config, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
	if err != nil || !found {
		return err
	}
	var kept []string
	skipping := false
	for line := range strings.Lines(config) {
		if !strings.HasPrefix(line, " ") {
			key, _, _ := strings.Cut(line, ":")
			skipping = strings.Contains("\n"+text, "\n"+key+":")
		}
		if !skipping {
			kept = append(kept, line)
		}
	}
	return unstructured.SetNestedField(object.Object, strings.Join(kept, "")+text, "data", "config.yaml")
}

// allReady holds when as many replicas serve as there should be.
func allReady(ctx context.Context) error {
	d := &appsv1.Deployment{}
	if err := cluster.Client.Get(ctx, localenv.OperatorKey, d); err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < replicas || d.Status.Replicas != replicas {
		return fmt.Errorf("%d replicas available of %d", d.Status.AvailableReplicas, d.Status.Replicas)
	}
	return nil
}

// eventually waits for a condition, for as long as a busy machine may take.
func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if err := cluster.Eventually(ctx, what, try); err != nil {
		t.Fatal(err)
	}
}

// namespace makes one for a test, and waits until its objects are judged there:
// API servers learn of webhooks with a delay.
func namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-", Labels: labels}}
	if err := cluster.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Client.Delete(context.Background(), ns); err != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	eventually(t, "objects to be judged", func(ctx context.Context) error {
		err := dryRun(ctx, graphOf(ns.Name, "probe", `{services: {a_b: {}}}`))
		if err == nil || !strings.Contains(err.Error(), "spec.services[a_b]") {
			return errors.Join(errors.New("a bad object is not refused by us"), err)
		}
		return nil
	})
	return ns.Name
}
