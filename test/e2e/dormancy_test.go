package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// sleepy lets graphs scale to zero, where the operator has the rights of
// mayActivate.
const sleepy = "activator: {enabled: true}"

// mostWake is what a wake adds to a start at most, on a machine that does nothing else.
const mostWake = time.Second

// mayActivate binds the operator to the role that is shipped for it.
func (w world) mayActivate() {
	w.Helper()
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "activation"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-activation"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: localenv.OperatorKey.Namespace, Name: localenv.OperatorKey.Name}},
	})
}

// dormant waits until a graph says that it sleeps, or does not, for a reason.
func (w world) dormant(name string, want metav1.ConditionStatus, reason string) {
	w.Helper()
	w.eventually(fmt.Sprintf("graph %s to be Dormant=%s for %s", name, want, reason), func(context.Context) error {
		c := meta.FindStatusCondition(w.graph(name).Status.Conditions, v1alpha1.ConditionDormant)
		if c == nil || c.Status != want || c.Reason != reason {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
}

// asleep waits until no worker is left, and looks at what is said about that.
func (w world) asleep(name string) {
	w.Helper()
	w.dormant(name, metav1.ConditionTrue, v1alpha1.ReasonIdle)
	w.eventually("the workers to be gone", func(context.Context) error {
		if decode, prefill := w.count(name, "decode"), w.count(name, "prefill"); decode+prefill > 0 {
			return fmt.Errorf("%d and %d pods", decode, prefill)
		}
		return nil
	})
	for service, spec := range w.ready(name).Spec.Services { // who sleeps is not broken
		if n := spec.Replicas; service != "Frontend" && (n == nil || *n != 1) {
			w.Errorf("service %s asks for %v replicas", service, n)
		}
	}
}

// sleepsAndWakes has a graph scale to zero, and loses no request by it.
func (w world) sleepsAndWakes() {
	w.Helper()
	text, err := os.ReadFile(quickstart)
	if err != nil {
		w.Fatal(err)
	}
	manifest := filepath.Join(w.TempDir(), "graph.yaml")
	annotated := strings.Replace(string(text), "  name: quickstart\n", "  name: quickstart\n  annotations: {nvidia.com/scale-to-zero-after: 15s}\n", 1)
	if err := os.WriteFile(manifest, []byte(annotated), 0o600); err != nil {
		w.Fatal(err)
	}
	w.apply(manifest)
	dgd := w.ready("quickstart")
	url := w.frontendURL(dgd)
	w.answers(url)
	w.asleep("quickstart")

	// Nothing is written about a graph that sleeps.
	leaseName := graph.ActivationName("quickstart")
	versions := func() string {
		lease, sleeping := &coordinationv1.Lease{}, w.graph("quickstart")
		if err := w.cluster.Client.Get(w.ctx, w.key(leaseName), lease); err != nil {
			w.Fatal(err)
		}
		return lease.ResourceVersion + " " + sleeping.ResourceVersion
	}
	models, err := w.cluster.Models(w.ctx, url)
	if err != nil || len(models) != 1 {
		w.Fatalf("a sleeping graph lists %v: %v", models, err)
	}
	before := versions()
	w.wait(20 * time.Second)
	if after := versions(); after != before {
		w.Errorf("versions of Lease and graph were %s and are %s: something was written while it slept", before, after)
	}

	// Fifty at once find nobody, and all of them are answered.
	started := w.watchesStarts("Frontend")
	begin := time.Now()
	var all sync.WaitGroup
	first := make([]time.Duration, 50)
	for i := range first {
		all.Go(func() {
			tokens := 0
			err := w.cluster.Chat(w.ctx, url, models[0], "hello", 4, func(string) {
				tokens++
				if tokens == 1 {
					first[i] = time.Since(begin)
				}
			})
			if err == nil && tokens == 0 {
				err = errors.New("no token")
			}
			if err != nil {
				w.Errorf("request %d: %v", i, err)
			}
		})
	}
	all.Wait()
	made, readyAt := started()
	for _, service := range []string{"decode", "prefill"} { // all of them have woken it once
		if n := w.count("quickstart", service); n != 1 {
			w.Errorf("%d pods of %s", n, service)
		}
	}
	latest := time.Duration(0)
	for _, d := range first {
		latest = max(latest, d)
	}
	summary.Line(w.T, "a graph that slept: %d requests at once, all answered, first tokens up to %s after they came; workers started after %s and took %s",
		len(first), latest.Round(time.Millisecond), made.Sub(begin).Round(time.Millisecond), readyAt.Sub(made).Round(time.Millisecond))
	if start := readyAt.Sub(made); *scaling && latest > start+mostWake {
		w.Errorf("the last first token came %s after the requests, at most %s are to pass beside a start of %s", latest, mostWake, start)
	}
	w.dormant("quickstart", metav1.ConditionFalse, v1alpha1.ReasonActive)
	w.ready("quickstart")

	// It sleeps again, and whoever may write its Lease wakes it.
	w.asleep("quickstart")
	wake := exec.CommandContext(w.ctx, filepath.Join(binDir, "kubectl-dynamo"), "scale", "wake", "quickstart", "--kubeconfig", w.cluster.Kubeconfig, "-n", w.namespace, "--wait", "5m")
	if out, err := wake.CombinedOutput(); err != nil || !strings.Contains(string(out), "told to wake") || !strings.Contains(string(out), "serves") {
		w.Errorf("%s%v", out, err)
	}
	w.answers(url)

	// That is the graph's own account, for this Lease alone.
	own := "system:serviceaccount:" + w.namespace + ":" + graph.DiscoveryAccount("quickstart")
	for _, c := range []struct {
		who, verb, lease string
		may              bool
	}{
		{own, "patch", leaseName, true},
		{own, "get", leaseName, true},
		{own, "delete", leaseName, false},
		{own, "patch", graph.ActivationName("other"), false},
		{own, "list", "", false},
		{"system:serviceaccount:" + w.namespace + ":default", "patch", leaseName, false},
		{"system:serviceaccount:elsewhere:" + graph.DiscoveryAccount("quickstart"), "patch", leaseName, false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: c.who, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.namespace, Verb: c.verb, Group: coordinationv1.GroupName, Resource: "leases", Name: c.lease,
		}}}
		w.create(review)
		if review.Status.Allowed != c.may {
			w.Errorf("%s may %s Lease %s: %t", c.who, c.verb, c.lease, review.Status.Allowed)
		}
	}

	// Without the annotation it is a graph like any other.
	w.kubectl("annotate", "dgd/quickstart", v1alpha1.AnnotationScaleToZeroAfter+"-")
	w.gone(&coordinationv1.Lease{}, leaseName)
	w.eventually("the condition to be gone", func(context.Context) error {
		if c := meta.FindStatusCondition(w.graph("quickstart").Status.Conditions, v1alpha1.ConditionDormant); c != nil {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	w.ready("quickstart")
	w.answers(url)
}

// watchesStarts looks from now on at pods of all services but one, and tells when the first was
// made and the last got ready, as somebody sees it who watches: objects tell whole seconds.
func (w world) watchesStarts(but string) (told func() (made, ready time.Time)) {
	w.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	events, err := w.cluster.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	if err != nil {
		stop()
		w.Fatal(err)
	}
	var made time.Time
	readyAt := map[string]time.Time{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.DeletionTimestamp != nil || pod.Labels[v1alpha1.LabelComponent] == but {
				continue
			}
			now := time.Now()
			if made.IsZero() {
				made = now
			}
			if _, was := readyAt[pod.Name]; !was && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				readyAt[pod.Name] = now
			}
		}
	}()
	return func() (time.Time, time.Time) {
		stop()
		<-ended
		last := time.Time{}
		for _, at := range readyAt {
			if at.After(last) {
				last = at
			}
		}
		if made.IsZero() || last.IsZero() {
			w.Fatal("the watch has seen no start")
		}
		return made, last
	}
}

// wakesSoon measures what a wake adds to a start, under the contract of 1.x and within a
// budget: from a request to a pod, and from a worker that is there to a token.
func (w world) wakesSoon() {
	w.Helper()
	container := func(command ...string) *v1alpha1.ExtraPodSpec {
		return &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.0", Command: command}}
	}
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "chat", Annotations: map[string]string{
		v1alpha1.AnnotationScaleToZeroAfter: "15s", v1alpha1.AnnotationGPUBudget: "1",
	}}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
		"Frontend": {ComponentType: v1alpha1.ComponentTypeFrontend, ExtraPodSpec: container()},
		"decode": {
			ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(1)), Resources: &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}},
			// It ends late, so that there is somebody to ask meanwhile.
			Envs:         []corev1.EnvVar{{Name: "MOCKER_STARTUP_DELAY", Value: "5s"}, {Name: "MOCKER_DRAIN_LINGER", Value: "10s"}},
			ExtraPodSpec: container("python3", "-m", "dynamo.vllm", "--model", "Qwen/Qwen3-0.6B"),
		},
	}
	w.create(dgd)
	w.ready("chat")
	url := w.frontendURL(dgd)
	w.answers(url)
	w.asleep("chat")

	models, err := w.cluster.Models(w.ctx, url)
	if err != nil || len(models) != 1 {
		w.Fatalf("a sleeping graph lists %v: %v", models, err)
	}
	behind := fmt.Sprintf("http://%s:8000", w.podOf("chat", "Frontend").Status.PodIP)
	listed := make(chan time.Time, 1)
	go func() {
		for w.ctx.Err() == nil {
			if found, err := w.cluster.Models(w.ctx, behind); err == nil && len(found) > 0 {
				listed <- time.Now()
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	started := w.watchesStarts("Frontend")
	begin := time.Now()
	var first time.Time
	if err := w.cluster.Chat(w.ctx, url, models[0], "hello", 4, func(string) {
		if first.IsZero() {
			first = time.Now()
		}
	}); err != nil {
		w.Fatal(err)
	}
	there := <-listed
	made, _ := started()
	summary.Line(w.T, "a wake: a pod after %s, its model after %s, a token %s later",
		made.Sub(begin).Round(time.Millisecond), there.Sub(begin).Round(time.Millisecond), first.Sub(there).Round(time.Millisecond))
	if added := made.Sub(begin) + first.Sub(there); *scaling && added > mostWake {
		w.Errorf("it adds %s, at most %s are to be", added, mostWake)
	}
	// Other tests may need the machine at the same time.
	if made.Sub(begin) > 10*time.Second || first.Sub(there) > 10*time.Second {
		w.Error("that is more than a moment")
	}

	// A request that comes while workers end finds them, or waits for others.
	w.dormant("chat", metav1.ConditionTrue, v1alpha1.ReasonIdle)
	ends := func() int {
		n := 0
		for _, pod := range w.pods(w.ctx) {
			if pod.Labels[v1alpha1.LabelComponent] == "decode" && pod.DeletionTimestamp != nil {
				n++
			}
		}
		return n
	}
	w.eventually("a worker that ends", func(context.Context) error {
		if ends() == 0 {
			return errors.New("none does")
		}
		return nil
	})
	if err := w.cluster.Chat(w.ctx, url, models[0], "hello", 4, func(string) {}); err != nil {
		w.Error(err)
	}
	w.dormant("chat", metav1.ConditionFalse, v1alpha1.ReasonActive)
}
