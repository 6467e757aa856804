package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// all runs every way, and not those alone that no other test takes: make installs.
var all = flag.Bool("all", false, "run every way to install, not just one for each scope")

// steps are what each installation has to do, in this order.
var steps = []struct {
	name string
	do   func(*world) string
}{
	{"install", (*world).install},
	{"graph", (*world).graph},
	{"model", (*world).model},
	{"request", (*world).request},
	{"metrics", (*world).metrics},
	{"upgrade", (*world).upgrade},
	{"uninstall", (*world).uninstall},
	{"left", (*world).left},
}

// TestEveryWayToInstall takes each tool and each scope through the life of an operator:
// a graph with every type of component, a model, a request, metrics for those who may read
// them, the next version, and an end after which everything can be deleted.
func TestEveryWayToInstall(t *testing.T) {
	cluster, programs := up(t, "--with", "inference")
	s := newTools(t, cluster, programs)
	if err := cluster.InstallAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, scope := range []string{oneNamespace, wholeCluster} {
		for _, way := range s.ways() {
			if way.scope != scope || !*all && !inCore(way) {
				continue
			}
			name := way.tool + ", " + way.scope
			t.Run(name, func(t *testing.T) {
				w := &world{T: t, tools: s, way: way}
				for _, step := range steps {
					began := time.Now()
					said := step.do(w)
					rows[name] = append(rows[name], said)
					t.Logf("%s: %s after %s", step.name, said, time.Since(began).Round(time.Second))
				}
			})
		}
	}
	head := []string{fmt.Sprintf("%-20s", "installed by, for")}
	for _, step := range steps {
		head = append(head, fmt.Sprintf("%-22s", step.name))
	}
	summary.Line(t, "%s", strings.Join(head, "| "))
	for _, way := range s.ways() {
		name := way.tool + ", " + way.scope
		if cells, ran := rows[name]; ran {
			line := []string{fmt.Sprintf("%-20s", name)}
			for _, cell := range cells {
				line = append(line, fmt.Sprintf("%-22s", cell))
			}
			summary.Line(t, "%s", strings.Join(line, "| "))
		}
	}
}

// inCore are the two that no other test of make test takes: Helm is taken by test/chart,
// and the program by the guides.
func inCore(w way) bool {
	return w.tool == "Kustomize" && w.scope == wholeCluster || w.tool == "CLI" && w.scope == oneNamespace
}

// world is one installation.
type world struct {
	*testing.T
	tools
	way
	before []string
}

func (w *world) eventually(what string, try func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 8*time.Minute)
	defer cancel()
	if err := w.Eventually(ctx, what, try); err != nil {
		w.Fatalf("%v\n%s", err, w.Cluster.Log(40))
	}
}

func (w *world) install() string {
	if err := w.Client.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.target}}); err != nil {
		w.Fatal(err)
	}
	if err := w.way.install(w.Context(), "dev"); err != nil {
		w.Fatalf("%v\n%s", err, w.Cluster.Log(40))
	}
	d := w.operator()
	return fmt.Sprintf("%d replicas", d.Status.ReadyReplicas)
}

func (w *world) operator() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), types.NamespacedName{Namespace: w.home, Name: w.deployment}, d); err != nil {
		w.Fatal(err)
	}
	if d.Status.ReadyReplicas != 2 || d.Status.UpdatedReplicas != 2 {
		w.Errorf("%d of %d replicas are ready, %d updated", d.Status.ReadyReplicas, d.Status.Replicas, d.Status.UpdatedReplicas)
	}
	return d
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.target, Name: name}
}

func (w *world) graph() string {
	file, err := os.Open("testdata/graph.yaml")
	if err != nil {
		w.Fatal(err)
	}
	defer file.Close()
	objects, err := w.Decode(file, w.target)
	if err == nil {
		err = w.Apply(w.Context(), objects)
	}
	if err != nil {
		w.Fatal(err)
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	w.eventually("the graph to be ready", func(ctx context.Context) error {
		if err := w.Client.Get(ctx, w.key("all"), dgd); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	w.answers()
	kinds := map[v1alpha1.ComponentType]bool{}
	for _, service := range dgd.Spec.Services {
		kinds[service.ComponentType] = true
	}
	if len(kinds) != 8 {
		w.Errorf("%d types of components, want all 8", len(kinds))
	}
	return fmt.Sprintf("%d types, an answer", len(kinds))
}

// answers asks the graph a question.
func (w *world) answers() {
	w.Helper()
	frontend := fmt.Sprintf("http://%s.%s.svc:8000", graph.ComponentName("all", "Frontend"), w.target)
	w.eventually("an answer", func(ctx context.Context) error {
		models, err := w.Models(ctx, frontend)
		if err == nil && len(models) == 0 {
			err = errors.New("the frontend knows no model yet")
		}
		if err != nil {
			return err
		}
		return w.Chat(ctx, frontend, models[0], "hello", 8, func(string) {})
	})
}

func (w *world) model() string {
	model := &v1alpha1.DynamoModel{}
	w.eventually("the adapter to be loaded", func(ctx context.Context) error {
		if err := w.Client.Get(ctx, w.key("adapter"), model); err != nil {
			return err
		}
		if model.Status.ReadyEndpoints != 1 {
			return fmt.Errorf("%d ready endpoints, %+v", model.Status.ReadyEndpoints, model.Status.Conditions)
		}
		return nil
	})
	if !slices.Contains(model.Finalizers, v1alpha1.Finalizer) {
		w.Error("a loaded adapter without a finalizer: its end proves nothing")
	}
	return "loaded"
}

func (w *world) request() string {
	request := &v1alpha1.DynamoGraphDeploymentRequest{}
	w.eventually("the request to be answered", func(ctx context.Context) error {
		if err := w.Client.Get(ctx, w.key("goal"), request); err != nil {
			return err
		}
		if request.Status.State != v1alpha1.RequestStateReady {
			return fmt.Errorf("it is %q: %+v", request.Status.State, request.Status.Conditions)
		}
		return nil
	})
	return "graph " + request.Status.Deployment.Name
}

// metrics are read by a scraper that may, over TLS, and by nobody else.
func (w *world) metrics() string {
	w.eventually("somebody without a token to be refused", func(ctx context.Context) error {
		return w.scrape(ctx, "made-up", http.StatusUnauthorized)
	})
	token, how := "", "by ServiceAccount"
	if w.token != "" {
		how = "by token of a Secret"
		secret := &corev1.Secret{}
		if err := w.Client.Get(w.Context(), types.NamespacedName{Namespace: w.home, Name: w.token}, secret); err != nil {
			w.Fatal(err)
		}
		token = string(secret.Data["token"])
	} else {
		token = w.authorised()
	}
	w.eventually("a scraper that may to be answered", func(ctx context.Context) error { return w.scrape(ctx, token, http.StatusOK) })
	return how
}

// authorised is the token of an account that is bound to the role of scrapers.
func (w *world) authorised() string {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.target, Name: "scraper"}}
	if err := w.Client.Create(w.Context(), account); err != nil {
		w.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := w.Client.SubResource("token").Create(w.Context(), account, request); err != nil {
		w.Fatal(err)
	}
	w.eventually("a scraper without the right to be refused", func(ctx context.Context) error {
		return w.scrape(ctx, request.Status.Token, http.StatusForbidden)
	})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper-" + w.target},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.reader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	if err := w.Client.Create(w.Context(), binding); err != nil {
		w.Fatal(err)
	}
	return request.Status.Token
}

func (w *world) scrape(ctx context.Context, token string, want int) error {
	secret := &corev1.Secret{}
	if err := w.Client.Get(ctx, types.NamespacedName{Namespace: w.home, Name: "webhook-server-cert"}, secret); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return errors.New("the Secret has no authority yet")
	}
	transport := w.HTTP.Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives, transport.TLSClientConfig = true, &tls.Config{RootCAs: roots}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s.%s.svc:8443/metrics", w.way.metrics, w.home), http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != want {
		err = fmt.Errorf("%s: %.200s", response.Status, text)
	}
	return err
}

// upgrade brings another version, which no pod of a graph may notice.
func (w *world) upgrade() string {
	w.before = w.pods()
	if err := w.way.install(w.Context(), "next"); err != nil {
		w.Fatalf("%v\n%s", err, w.Cluster.Log(40))
	}
	d := w.operator()
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "dynamo-operator:next" {
		w.Errorf("it runs %s", image)
	}
	if now := w.pods(); !slices.Equal(now, w.before) {
		w.Errorf("pods before: %v\nand after: %v", w.before, now)
	}
	return fmt.Sprintf("%d pods as they were", len(w.before))
}

// pods are those of graphs, with their restarts; a profiler's come and go.
func (w *world) pods() []string {
	w.Helper()
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.target), client.HasLabels{v1alpha1.LabelGraphName}); err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		restarts := int32(0)
		for _, c := range pod.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		names = append(names, fmt.Sprintf("%s %s %d", pod.Name, pod.UID, restarts))
	}
	slices.Sort(names)
	return names
}

// uninstall takes the operator away. Graphs go on serving.
func (w *world) uninstall() string {
	if err := w.way.uninstall(w.Context()); err != nil {
		w.Fatalf("%v\n%s", err, w.Cluster.Log(40))
	}
	if now := w.pods(); !slices.Equal(now, w.before) {
		w.Errorf("pods before: %v\nand after: %v", w.before, now)
	}
	w.answers()
	return "graphs serve on"
}

// left is what cannot be deleted without the operator: nothing.
func (w *world) left() string {
	out, err := w.Kubectl(w.Context(), nil, "get", "all,cm,sa,secret,lease,role,rolebinding,pdb,networkpolicy,clusterrole,clusterrolebinding,validatingwebhookconfiguration,validatingadmissionpolicy",
		"--all-namespaces", "--selector", "app.kubernetes.io/name=dynamo-operator", "--output", "name")
	if err != nil {
		w.Fatal(err)
	}
	if strings.TrimSpace(out) != "" {
		w.Errorf("of the installation there are %s", out)
	}
	for _, name := range []string{w.target, w.home} {
		err := w.Client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if client.IgnoreNotFound(err) != nil {
			w.Fatal(err)
		}
	}
	for _, name := range []string{w.target, w.home} {
		w.eventually("namespace "+name+" to go without an operator", func(ctx context.Context) error {
			namespace := &corev1.Namespace{}
			err := w.Client.Get(ctx, types.NamespacedName{Name: name}, namespace)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(err, fmt.Errorf("it is there: %+v", namespace.Status.Conditions))
		})
	}
	return "nothing"
}
