package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// world is some namespaces and who wants to write to them. Its tests are not
// parallel: there is one cluster to be held.
type world struct {
	*testing.T
	ctx   context.Context
	mark  int64
	graph int
}

var worlds int

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	mark, err := auditlog.Of(cluster.Kubeconfig).End()
	if err != nil {
		t.Fatal(err)
	}
	worlds++
	// What one test leaves on the Lease of the cluster is no concern of the next.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: namespacescope.ClusterLeaseName}}
	if err := client.IgnoreNotFound(cluster.Client.Delete(ctx, lease)); err != nil {
		t.Fatal(err)
	}
	return &world{T: t, ctx: ctx, mark: mark}
}

// namespace makes one.
func (w *world) namespace(name string) string {
	w.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, worlds)}}
	if err := cluster.Client.Create(w.ctx, ns); err != nil {
		w.Fatal(err)
	}
	// There is no controller that would end it, but no later test shall have its work.
	w.Cleanup(func() {
		if err := cluster.Client.DeleteAllOf(context.Background(), &v1alpha1.DynamoGraphDeployment{}, client.InNamespace(ns.Name)); err != nil {
			w.Error(err)
		}
	})
	return ns.Name
}

func (w *world) eventually(what string, try func(ctx context.Context) error) {
	w.Helper()
	if err := cluster.Eventually(w.ctx, what, try); err != nil {
		w.Fatal(err)
	}
}

// make adds a graph to a namespace and returns its name.
func (w *world) make(ns string) string {
	w.Helper()
	w.graph++
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("g%d", w.graph)}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{}
	for _, service := range []string{"a", "b", "c"} {
		dgd.Spec.Services[service] = &v1alpha1.SharedSpec{
			ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(1)),
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "example.com/at-rest:1", Command: []string{"rest"}}},
		}
	}
	if err := cluster.Client.Create(w.ctx, dgd); err != nil {
		w.Fatal(err)
	}
	return dgd.Name
}

// made waits until somebody has made what a graph asks for.
func (w *world) made(ns, name string) {
	w.Helper()
	w.eventually(fmt.Sprintf("graph %s/%s to be made", ns, name), func(ctx context.Context) error {
		return cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name + "-c"}, &v1alpha1.DynamoComponentDeployment{})
	})
}

// settings of an operator.
type settings struct {
	// namespaces are its own; none for the whole cluster.
	namespaces []string
	// election is the Lease of its replicas, if it has some.
	election string
	// off are guards that it runs without, clock how wrong its clock is. Both need the
	// program of tests.
	off   []guard.Guard
	clock string
	// slow lets few requests through, so that passes are under way for long.
	slow bool
}

func (s settings) config() string {
	text := "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\nlog: {format: text}\nserver: {metricsAddress: \"\", healthAddress: \"\"}\n" +
		fmt.Sprintf("namespaces: [%s]\n", strings.Join(s.namespaces, ", "))
	durations := ""
	if !*shipped {
		text += "tenancy: {duration: 12s, renew: 2s}\n"
		durations = ", leaseDuration: 12s, renewDeadline: 8s, retryPeriod: 1s"
	}
	if s.election != "" {
		text += fmt.Sprintf("leaderElection: {enabled: true, id: %s, namespace: %s%s}\n", s.election, installation.Namespace, durations)
	}
	if s.slow {
		text += "controller: {qps: 4, burst: 4, timeout: 5m}\n"
	}
	return text
}

// operator is a process.
type operator struct {
	name    string
	process *exec.Cmd
	said    *output
	ended   chan struct{}
}

// operate starts an operator under an account of its own. It ends with the test.
func (w *world) operate(name string, s settings) *operator {
	w.Helper()
	o := &operator{name: fmt.Sprintf("%s-%d", name, worlds), said: &output{}, ended: make(chan struct{})}
	kubeconfig := w.account(o.name, s.namespaces)
	file := filepath.Join(w.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(s.config()), 0o600); err != nil {
		w.Fatal(err)
	}
	run := program
	if len(s.off) > 0 || s.clock != "" {
		run = unguarded
	}
	var off []string
	for _, g := range s.off {
		off = append(off, string(g))
	}
	o.process = exec.Command(run, "--config", file)
	o.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAME="+o.name, "POD_NAMESPACE="+installation.Namespace,
		"DYNAMO_GUARDS_OFF="+strings.Join(off, ","), "DYNAMO_CLOCK_OFFSET="+s.clock)
	o.process.Stderr = o.said
	if err := o.process.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		_ = o.process.Wait() // a leader that lost its Lease ends by itself, with an error
	}()
	w.Cleanup(func() {
		_ = o.process.Process.Kill() // it may have ended, as it should
		<-o.ended
		if w.Failed() {
			w.Logf("operator %s said:\n%s", o.name, o.said)
		}
	})
	return o
}

// account is a kubeconfig of an account with the rights that an operator is shipped
// with.
func (w *world) account(name string, namespaces []string) string {
	w.Helper()
	create := func(object client.Object) {
		w.Helper()
		if err := cluster.Client.Create(w.ctx, object); err != nil {
			w.Fatal(err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: name}}
	create(account)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: installation.Namespace, Name: name}}
	bind := func(namespace, kind, role string) {
		create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "-"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		})
	}
	// The shipped role names the Lease of one release; here are several.
	create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		},
	})
	bind(installation.Namespace, "Role", name)
	for _, namespace := range namespaces {
		bind(namespace, "ClusterRole", "dynamo-operator-manager")
		bind(namespace, "ClusterRole", "dynamo-operator-namespace-scope")
	}
	if len(namespaces) == 0 {
		bind(metav1.NamespaceSystem, "Role", "dynamo-operator-cluster-scope")
		for _, role := range []string{"dynamo-operator-manager", "dynamo-operator-manager-cluster"} {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			}
			create(binding)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := cluster.Client.SubResource("token").Create(w.ctx, account, request); err != nil {
		w.Fatal(err)
	}
	known, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	for name := range known.AuthInfos {
		known.AuthInfos[name] = &api.AuthInfo{Token: request.Status.Token}
	}
	file := filepath.Join(w.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*known, file); err != nil {
		w.Fatal(err)
	}
	return file
}

func (w *world) signal(o *operator, s syscall.Signal) {
	w.Helper()
	if err := o.process.Process.Signal(s); err != nil {
		w.Fatal(err)
	}
}

// stop asks an operator to end and waits until it has.
func (w *world) stop(o *operator) {
	w.Helper()
	w.signal(o, syscall.SIGTERM)
	w.gone(o)
}

func (w *world) gone(o *operator) {
	w.Helper()
	select {
	case <-o.ended:
	case <-w.ctx.Done():
		w.Fatalf("operator %s does not end", o.name)
	}
}

// says waits until an operator has logged something.
func (w *world) says(o *operator, what ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("operator %s to say %q", o.name, what), func(context.Context) error {
		for line := range strings.Lines(o.said.String()) {
			if !slices.ContainsFunc(what, func(part string) bool { return !strings.Contains(line, part) }) {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

// writes are those of operators to a namespace, in order, but for their Leases, events,
// and the notes that say whose an object is.
func (w *world) writes(ns string) []auditlog.Entry {
	w.Helper()
	var all []auditlog.Entry
	err := auditlog.Of(cluster.Kubeconfig).Since(w.mark, func(e auditlog.Entry) {
		ours := strings.HasPrefix(e.User.Username, "system:serviceaccount:"+installation.Namespace+":")
		if ours && e.Ref.Namespace == ns && e.Writes() && e.Status.Code < 300 && e.Ref.Resource != "leases" && e.Ref.Resource != "events" && !namespacescope.IsNote(e.URI) {
			all = append(all, e)
		}
	})
	if err != nil {
		w.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b auditlog.Entry) int { return a.Received.Compare(b.Received) })
	return all
}

// turns are the writers of a namespace in the order in which they took over.
func (w *world) turns(ns string) []string {
	w.Helper()
	var names []string
	for _, e := range w.writes(ns) {
		names = append(names, strings.TrimPrefix(e.User.Username, "system:serviceaccount:"+installation.Namespace+":"))
	}
	return slices.Compact(names)
}

// wrote waits until an operator has written to a namespace.
func (w *world) wrote(o *operator, ns string) {
	w.Helper()
	w.eventually(fmt.Sprintf("operator %s to write to %s", o.name, ns), func(context.Context) error {
		if turns := w.turns(ns); !slices.Contains(turns, o.name) {
			return fmt.Errorf("written by %v", turns)
		}
		return nil
	})
}

// order checks that operators wrote to a namespace one after the other.
func (w *world) order(ns string, operators ...*operator) {
	w.Helper()
	var want []string
	for _, o := range operators {
		want = append(want, o.name)
	}
	if got := w.turns(ns); !slices.Equal(got, want) {
		w.Errorf("namespace %s was written to by %v in turn, want %v", ns, got, want)
	}
}

// fights waits until operators have written to a namespace in turn, each again after
// another: the attack succeeds without the guard.
func (w *world) fights(ns string) {
	w.Helper()
	w.eventually("two writers in "+ns, func(context.Context) error {
		w.make(ns)
		if turns := w.turns(ns); len(turns) < 3 {
			return fmt.Errorf("written by %v", turns)
		}
		return nil
	})
	w.Logf("without the guard: %v", w.turns(ns)[:3])
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
