package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/config/crd"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

const (
	release   = "dynamo"
	home      = "dynamo-release"
	namespace = "graphs"
	// The programs of this repository play images of these names.
	local = `dynamo-operator:
  controllerManager:
    manager:
      image: {repository: dynamo-operator, tag: dev}
      config: {certificate: {validity: 1m, authorityValidity: 3m}}
  dynamo: {profiler: {image: "dynamo-profiler:dev"}}
`
)

// TestAReleaseLives installs, upgrades, rolls back and uninstalls by the real
// Helm, with a graph that must not notice.
func TestAReleaseLives(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	if err := cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	helmDo(ctx, t, "install", release, earlier(ctx, t), "--namespace", home, "--create-namespace", "--values", "-", "--wait", "--timeout", "5m")
	served(ctx, t)

	graph := quickstart(ctx, t)
	isReady(ctx, t, graph)
	before := pods(ctx, t)
	if len(before) == 0 {
		t.Fatal("a ready graph without pods")
	}
	refuses(ctx, t)

	helmDo(ctx, t, "upgrade", release, platform, "--namespace", home, "--values", "-", "--wait", "--timeout", "5m",
		"--set", "dynamo-operator.controllerManager.manager.config.controller.workers=3")
	scraped(ctx, t, types.NamespacedName{Namespace: home, Name: release + "-dynamo-operator"}, release+"-dynamo-operator-metrics-reader")
	rotates(ctx, t)
	refuses(ctx, t)
	diagnosed(ctx, t)
	leavesNothing(ctx, t)
	helmDo(ctx, t, "rollback", release, "1", "--namespace", home, "--wait", "--timeout", "5m")
	served(ctx, t)
	isReady(ctx, t, graph)
	if diff := cmp.Diff(before, pods(ctx, t)); diff != "" {
		t.Errorf("upgrade and rollback touched pods of the graph:\n%s", diff)
	}

	helmDo(ctx, t, "upgrade", release, platform, "--namespace", home, "--values", "-", "--wait", "--timeout", "5m", "--set", "dynamo-operator.webhook.enabled=false")
	withoutConverter(ctx, t, true)
	frozen(ctx, t, graph)
	helmDo(ctx, t, "upgrade", release, platform, "--namespace", home, "--values", "-", "--wait", "--timeout", "5m")
	withoutConverter(ctx, t, false)
	served(ctx, t)

	helmDo(ctx, t, "uninstall", release, "--namespace", home, "--wait", "--timeout", "5m")
	if diff := cmp.Diff(before, pods(ctx, t)); diff != "" {
		t.Errorf("uninstalling touched pods of the graph:\n%s", diff)
	}
	left(ctx, t)
	frozen(ctx, t, graph)
	if err := cluster.Client.Delete(ctx, graph, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the graph to be deleted without an operator", func(ctx context.Context) error {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(graph), graph)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// withoutConverter waits until v1beta1 is frozen, because nobody converts any more, or
// until it is served again.
func withoutConverter(ctx context.Context, t *testing.T, want bool) {
	t.Helper()
	for _, name := range definition.Converted {
		eventually(ctx, t, fmt.Sprintf("%s to be frozen: %t", name, want), func(ctx context.Context) error {
			d := &apiextensionsv1.CustomResourceDefinition{}
			if err := cluster.Client.Get(ctx, types.NamespacedName{Name: name}, d); err != nil {
				return err
			}
			if definition.Frozen(d) != want || definition.Served(d) == want || definition.HasConverter(d) == want {
				return fmt.Errorf("frozen %t, served %t, converted %t", definition.Frozen(d), definition.Served(d), definition.HasConverter(d))
			}
			return nil
		})
	}
}

// frozen sees to it that v1beta1, which the garbage collector knows objects by, drops
// nothing of a graph and takes none, now that nobody converts.
func frozen(ctx context.Context, t *testing.T, graph *v1alpha1.DynamoGraphDeployment) {
	t.Helper()
	before := &v1alpha1.DynamoGraphDeployment{}
	if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(graph), before); err != nil {
		t.Fatal(err)
	}
	asBeta := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))
		o.SetNamespace(graph.Namespace)
		o.SetName(name)
		return o
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"lab":"frozen"}}}`))
	if err := cluster.Client.Patch(ctx, asBeta(graph.Name), label); err != nil {
		t.Errorf("the metadata of a graph cannot be changed as v1beta1: %v", err)
	}
	after := &v1alpha1.DynamoGraphDeployment{}
	if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(graph), after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || after.Labels["lab"] != "frozen" {
		t.Errorf("a write as v1beta1 left labels %v and changed\n%s", after.Labels, diff)
	}
	fresh := asBeta("fresh")
	fresh.Object["spec"] = map[string]any{"components": []any{}}
	other := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"components":[]}}`))
	for what, err := range map[string]error{
		"create": cluster.Client.Create(ctx, fresh),
		"change": cluster.Client.Patch(ctx, asBeta(graph.Name), other),
	} {
		if err == nil || !strings.Contains(err.Error(), "nothing converts from") {
			t.Errorf("%s as v1beta1 where nobody converts: %v", what, err)
		}
	}
}

// earlier is the chart before its last change, as history has it, that can be installed;
// where there is none, in a shallow clone, the chart itself. It runs today's program, which
// writes today's definitions and needs today's rights: a chart that gives none does not do.
func earlier(ctx context.Context, t *testing.T) string {
	t.Helper()
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, "git", append([]string{"-C", "../.."}, args...)...).Output()
	}
	commits, err := git("rev-list", "--max-count=20", "--skip=1", "HEAD", "--", "charts/platform")
	if err != nil {
		commits = nil
	}
	for name := range strings.FieldsSeq(string(commits)) {
		archive := filepath.Join(t.TempDir(), "chart.tar")
		if _, err := git("archive", "--output", archive, name, "charts/platform"); err != nil {
			break // a shallow clone ends here
		}
		folder := t.TempDir()
		if out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", folder).CombinedOutput(); err != nil {
			t.Fatalf("unpack the chart of %s: %v %s", name, err, out)
		}
		chart := filepath.Join(folder, "charts", "platform")
		if lacks := unknownDefinition(t, chart); lacks != "" {
			summary.Line(t, "charts: the chart of %.7s knows no %s; upgraded from today's", name, lacks)
			return platform
		}
		if lacks := newRight(t, chart); lacks != "" {
			summary.Line(t, "charts: the chart of %.7s gives no right to %s; upgraded from today's", name, lacks)
			return platform
		}
		// A state on the way to a change need not be one that anybody could install.
		if _, err := runHelm(ctx, local, "template", release, chart, "--namespace", home, "--kube-version", "v1.37.0", "--values", "-"); err != nil {
			t.Logf("the chart of %.7s is passed over: %v", name, err)
			continue
		}
		summary.Line(t, "charts: upgraded from the chart of %.7s", name)
		return chart
	}
	summary.Line(t, "charts: no earlier chart in this clone's history; upgraded from the same")
	return platform
}

// unknownDefinition is a definition of ours that a chart's roles do not name; empty if
// they name all.
func unknownDefinition(t *testing.T, chart string) string {
	t.Helper()
	names, err := os.ReadFile(filepath.Join(chart, "templates", "_names.tpl"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if !strings.Contains(string(names), strconv.Quote(object.Spec.Names.Plural)) {
			return object.Spec.Names.Plural
		}
	}
	return ""
}

// newRight is a right of the operator that a chart does not give; empty if it gives all.
func newRight(t *testing.T, chart string) string {
	t.Helper()
	rights := func(chart string) map[string]bool {
		text, err := os.ReadFile(filepath.Join(chart, "files", "rules", "manager.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var rules []rbacv1.PolicyRule
		if err := yaml.Unmarshal(text, &rules); err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, r := range rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						all[strings.Join([]string{verb, resource, group}, " ")] = true
					}
				}
			}
		}
		return all
	}
	before := rights(chart)
	for _, right := range slices.Sorted(maps.Keys(rights(platform))) {
		if !before[right] {
			return right
		}
	}
	return ""
}

func helmDo(ctx context.Context, t *testing.T, args ...string) {
	t.Helper()
	if _, err := runHelm(ctx, local, args...); err != nil {
		t.Fatal(err)
	}
}

func eventually(ctx context.Context, t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	if err := cluster.Eventually(ctx, what, try); err != nil {
		t.Fatal(err)
	}
}

// served waits until webhooks are registered, which the operator does once it
// answers, and every replica is up.
func served(ctx context.Context, t *testing.T) {
	t.Helper()
	eventually(ctx, t, "webhooks to be registered", func(ctx context.Context) error {
		return cluster.Client.Get(ctx, types.NamespacedName{Name: release + "-dynamo-operator-validating"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	})
	eventually(ctx, t, "two replicas of the operator", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: home, Name: release + "-dynamo-operator-controller-manager"}, d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 2 || d.Status.UpdatedReplicas != 2 || d.Status.Replicas != 2 {
			return fmt.Errorf("%d ready, %d updated of %d", d.Status.ReadyReplicas, d.Status.UpdatedReplicas, d.Status.Replicas)
		}
		return nil
	})
}

// refuses waits until the webhook is asked about a graph that only it refuses.
func refuses(ctx context.Context, t *testing.T) {
	t.Helper()
	invalid := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "refused"}}
	invalid.Spec.Services = map[string]*v1alpha1.SharedSpec{"a_b": {}}
	eventually(ctx, t, "the webhook to refuse a graph that cannot work", func(ctx context.Context) error {
		switch err := cluster.Client.Create(ctx, invalid.DeepCopy(), client.DryRunAll); {
		case err == nil:
			return errors.New("it is admitted")
		case !strings.Contains(err.Error(), "spec.services[a_b]"):
			return err
		}
		return nil
	})
}

// rotates follows the operator's certificate, which lasts a minute, to the next.
func rotates(ctx context.Context, t *testing.T) {
	t.Helper()
	read := func(ctx context.Context) (string, error) {
		var secrets corev1.SecretList
		if err := cluster.Client.List(ctx, &secrets, client.InNamespace(home)); err != nil {
			return "", err
		}
		for i := range secrets.Items {
			if crt := secrets.Items[i].Data[corev1.TLSCertKey]; len(crt) > 0 {
				return string(crt), nil
			}
		}
		return "", errors.New("no Secret holds a certificate")
	}
	seen := map[string]bool{}
	eventually(ctx, t, "another certificate", func(ctx context.Context) error {
		crt, err := read(ctx)
		if err != nil {
			return err
		}
		if seen[crt] = true; len(seen) < 2 {
			return errors.New("it is the same")
		}
		return nil
	})
}

func quickstart(ctx context.Context, t *testing.T) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	file, err := os.Open("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	objects, err := cluster.Decode(file, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	return &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quickstart"}}
}

func isReady(ctx context.Context, t *testing.T, graph *v1alpha1.DynamoGraphDeployment) {
	t.Helper()
	eventually(ctx, t, "the graph to be ready", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(graph), graph); err != nil {
			return err
		}
		if graph.Status.State != v1alpha1.GraphStateSuccessful {
			return fmt.Errorf("it is %s", graph.Status.State)
		}
		return nil
	})
}

// pods are the names of the graph's pods with their restarts.
func pods(ctx context.Context, t *testing.T) []string {
	t.Helper()
	var list corev1.PodList
	if err := cluster.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		restarts := int32(0)
		for _, container := range list.Items[i].Status.ContainerStatuses {
			restarts += container.RestartCount
		}
		names = append(names, fmt.Sprintf("%s %s, %d restarts", list.Items[i].Name, list.Items[i].UID, restarts))
	}
	slices.Sort(names)
	return names
}

// left fails if something of the release is still there, but for definitions.
func left(ctx context.Context, t *testing.T) {
	t.Helper()
	eventually(ctx, t, "nothing of the release to be left", func(ctx context.Context) error {
		out, err := cluster.Kubectl(ctx, nil, "get", "all,cm,sa,secret,lease,role,rolebinding,pdb,networkpolicy,clusterrole,clusterrolebinding,validatingwebhookconfiguration,validatingadmissionpolicy",
			"--all-namespaces", "--selector", "app.kubernetes.io/instance="+release, "--output", "name")
		if err != nil {
			return err
		}
		registered, err := cluster.Kubectl(ctx, nil, "get", "validatingwebhookconfiguration", "--output", "name")
		if err != nil {
			return err
		}
		if strings.Contains(out, "/") || strings.Contains(registered, release) {
			return fmt.Errorf("there are %s %s", out, registered)
		}
		return nil
	})
}
