// Package attack does what a tenant could try, against a real API server with the
// operator as it is shipped, and sees that it leads nowhere. Each attack is also
// made where its guards are taken away, and succeeds there: so it is the guard
// that holds, and not a mistake of the test.
package attack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
)

// world is a cluster with the operator in it.
type world struct {
	*localenv.Cluster
	// bare has none of the guards that an attack is held by: they are left out of
	// the operator's build, definitions have no rules, policies no bindings, no
	// webhook is registered, and whoever is held by rights has them all.
	bare bool
}

// shipped and bare are the two worlds that attacks are made in. Their clusters
// start together, once an attack needs one.
var shipped, bare *world

var (
	programs, folder string
	start            = sync.OnceValue(startBoth)
)

// webhookName is that of the configuration by which the operator asks to be
// asked, webhookService leads to it.
const (
	webhookName    = "dynamo-operator-validating"
	webhookService = "dynamo-operator-webhook-service"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	programs = os.Getenv("PLAYGROUND_BIN")
	var err error
	if folder, err = os.MkdirTemp("", "attack-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	defer stopBoth()
	code := m.Run()
	if code != 0 {
		for _, w := range []*world{shipped, bare} {
			if w != nil {
				fmt.Print(w.Log(60))
			}
		}
	}
	return code
}

// worlds are both clusters, or the end of the test.
func worlds(t *testing.T) {
	t.Helper()
	if programs == "" {
		t.Skip("PLAYGROUND_BIN is not set: no programs to run a cluster from (make test sets it)")
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
}

func startBoth() error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	var both sync.WaitGroup
	var asShipped, without error
	both.Go(func() { asShipped = startShipped(ctx) })
	both.Go(func() { without = startBare(ctx) })
	both.Wait()
	return errors.Join(asShipped, without)
}

func stopBoth() {
	var both sync.WaitGroup
	for _, w := range []*world{shipped, bare} {
		if w == nil {
			continue
		}
		both.Go(func() {
			if err := w.Down(context.Background()); err != nil {
				fmt.Println(err)
			}
		})
	}
	both.Wait()
}

// up starts a cluster.
func up(ctx context.Context, name, binDir string) (*localenv.Cluster, error) {
	log, err := os.Create(filepath.Join(folder, name+".log"))
	if err != nil {
		return nil, err
	}
	c, err := localenv.Up(ctx, localenv.Options{
		BinDir: binDir, Dir: filepath.Join(folder, name), Nodes: 2, Log: log, Args: []string{"--with", "istio"},
	})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	c.Client = retryclient.Client(c.Client)
	return c, nil
}

// startShipped installs what is shipped, word by word but for graphs being let scale to
// zero, and waits until the API server asks it: it learns of webhooks and policies with a
// delay.
func startShipped(ctx context.Context) error {
	c, err := up(ctx, "shipped", programs)
	if c != nil {
		shipped = &world{Cluster: c}
	}
	if err != nil {
		return err
	}
	if err := c.InstallAPI(ctx); err != nil {
		return err
	}
	if err := c.InstallOperatorWith(ctx, sleepy); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Log(60))
	}
	if err := c.Client.Create(ctx, mayActivate()); err != nil {
		return err
	}
	return c.Eventually(ctx, "objects to be judged by the webhooks", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, types.NamespacedName{Name: webhookName}, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
			return err
		}
		if err := c.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "none"}, object(betaVersion, "DynamoGraphDeployment", "", "")); !apierrors.IsNotFound(err) {
			return fmt.Errorf("v1beta1 is not served: %w", err)
		}
		err := c.Client.Create(ctx, graphOf("default", "probe", `{services: {a_b: {}}}`), dryRun)
		if err == nil || !strings.Contains(err.Error(), "spec.services[a_b]") {
			return errors.Join(errors.New("a bad object is not refused"), err)
		}
		return nil
	})
}

// startBare installs an operator that was built without guards, and leaves out
// what holds attacks beside it.
func startBare(ctx context.Context) error {
	binDir, err := unguarded(ctx)
	if err != nil {
		return err
	}
	c, err := up(ctx, "bare", binDir)
	if c != nil {
		bare = &world{Cluster: c, bare: true}
	}
	if err != nil {
		return err
	}
	definitions, err := installation.Definitions()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		forgetRules(definition.Object)
	}
	if err := c.Apply(ctx, definitions); err != nil {
		return err
	}
	objects, err := installation.Small()
	if err != nil {
		return err
	}
	var kept []*unstructured.Unstructured
	for _, object := range objects {
		switch object.GetKind() {
		case "ValidatingAdmissionPolicyBinding":
			continue
		case "Deployment":
			err = setVariable(object, "DYNAMO_GUARDS_OFF", strings.Join(guardsInUse(), ","))
		case "ConfigMap":
			err = configure(object, map[string]any{"webhook": map[string]any{"enabled": false}, "activator": map[string]any{"enabled": true}})
		}
		if err != nil {
			return err
		}
		kept = append(kept, object)
	}
	if err := errors.Join(c.Apply(ctx, kept), c.Client.Create(ctx, mayActivate())); err != nil {
		return err
	}
	i := installation.Installer{Client: c.Client, Owner: "attack"}
	if err := i.Ready(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Log(60))
	}
	// No webhook judges here, so something else has to convert, and believes payloads.
	converter, err := installation.Converter(installation.Namespace)
	if err != nil {
		return err
	}
	for _, object := range converter {
		if object.GetKind() == "Deployment" {
			if err := setVariable(object, "DYNAMO_GUARDS_OFF", strings.Join(guardsInUse(), ",")); err != nil {
				return err
			}
		}
	}
	if err := i.Converter(ctx, converter); err != nil {
		return fmt.Errorf("%w\n%s", err, c.Log(60))
	}
	return nil
}

// forgetRules takes the rules out of a definition, and leaves its types.
func forgetRules(part any) {
	switch part := part.(type) {
	case map[string]any:
		delete(part, "x-kubernetes-validations")
		for _, inner := range part {
			forgetRules(inner)
		}
	case []any:
		for _, inner := range part {
			forgetRules(inner)
		}
	}
}

// unguarded builds an operator and a plugin for kubectl whose guards can be switched
// off, and is a folder that has them among the programs in place of the shipped ones.
func unguarded(ctx context.Context) (string, error) {
	binDir := filepath.Join(folder, "bin")
	if err := os.Mkdir(binDir, 0o755); err != nil {
		return "", err
	}
	all, err := os.ReadDir(programs)
	if err != nil {
		return "", err
	}
	ours := []string{"dynamo-operator", "kubectl-dynamo"}
	for _, program := range all {
		if slices.Contains(ours, program.Name()) {
			continue
		}
		original, err := filepath.Abs(filepath.Join(programs, program.Name()))
		if err != nil {
			return "", err
		}
		if err := os.Symlink(original, filepath.Join(binDir, program.Name())); err != nil {
			return "", err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-tags", "unguarded", "-o", binDir+string(filepath.Separator), "./cmd/"+ours[0], "./cmd/"+ours[1])
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build our programs without guards: %w: %s", err, said)
	}
	return binDir, nil
}

// guardsInUse are those that the attacks are held by.
func guardsInUse() []string {
	var names []string
	for _, a := range attacks {
		for _, b := range a.heldBy {
			if b.kind == inCode {
				names = append(names, b.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// setVariable gives the operator one more variable of its environment.
func setVariable(deployment *unstructured.Unstructured, name, value string) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, found, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil || !found {
		return errors.Join(errors.New("a Deployment without containers"), err)
	}
	container := containers[0].(map[string]any)
	variables, _ := container["env"].([]any)
	container["env"] = append(variables, map[string]any{"name": name, "value": value})
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

// configure lays settings over the operator's configuration.
func configure(object *unstructured.Unstructured, settings map[string]any) error {
	text, found, err := unstructured.NestedString(object.Object, "data", "config.yaml")
	if err != nil || !found {
		return err
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	maps.Copy(config, settings)
	written, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(object.Object, string(written), "data", "config.yaml")
}

// withoutWebhooks takes the operator's webhooks off the network while try runs:
// the Service leads to nobody.
func (w *world) withoutWebhooks(t *testing.T, try func()) {
	t.Helper()
	if w.bare {
		try()
		return
	}
	point := func(selector string) {
		t.Helper()
		service := object("v1", "Service", installation.Namespace, webhookService)
		if err := w.Client.Patch(context.Background(), service, merge(`{"spec":{"selector":{"away":`+selector+`}}}`)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	point(`"yes"`)
	defer point(`null`)
	if err := w.Eventually(ctx, "nobody to be asked", func(ctx context.Context) error {
		return w.Client.Create(ctx, graphOf("default", "probe", `{services: {a_b: {}}}`), dryRun)
	}); err != nil {
		t.Fatal(err)
	}
	try()
}

// withoutBinding takes the binding of a policy away until it is put back, at the
// latest when the test ends. It must not run beside attacks that the policy holds.
func (w *world) withoutBinding(t *testing.T, policy string) (restore func()) {
	t.Helper()
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := w.Client.Get(t.Context(), types.NamespacedName{Name: policy}, binding); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	restore = func() {
		again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name, Labels: binding.Labels}, Spec: binding.Spec}
		if err := client.IgnoreAlreadyExists(w.Client.Create(context.Background(), again)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	return restore
}

// dryRun has the API server judge an object and forget it.
var dryRun = client.DryRunAll

func merge(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

// gone is nil once there is no such object.
func gone(err error) error {
	switch {
	case err == nil:
		return errors.New("it is still there")
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// read is an object from YAML with its namespace filled in.
func read(text, namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		panic(err) // a literal of a test
	}
	o.SetNamespace(namespace)
	return o
}

func graphOf(namespace, name, spec string) *unstructured.Unstructured {
	return ofOurs("DynamoGraphDeployment", namespace, name, spec)
}

func ofOurs(kind, namespace, name, spec string) *unstructured.Unstructured {
	o := object("nvidia.com/v1alpha1", kind, namespace, name)
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(spec), &decoded); err != nil {
		panic(err) // a literal of a test
	}
	o.Object["spec"] = decoded
	return o
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
