package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// graph is the path of a graph's page.
func graph(name string) string { return "/graphs/" + namespace + "/" + name }

// TestTheConsoleOfARunningCluster looks at one cluster by two consoles: of somebody with
// the rights that the guide names, and of somebody who may do everything. What is done to
// the cluster is done in this order.
func TestTheConsoleOfARunningCluster(t *testing.T) {
	if *pictures != "" {
		t.Skip("a browser walks instead")
	}
	settled(t)
	guest, admin := open(t, "console-guest", documented), open(t, "console-admin", everything)
	// Many pages are open all the time: they share what is watched.
	live := guest.follow(t, "/live"+graph(healthy))
	for _, s := range []*session{guest, admin} {
		for _, path := range []string{"/", graph(healthy), graph(ailing), graph(healthy) + "/scaling", graph(healthy) + "/rollout", "/requests", "/models", "/cluster"} {
			s.follow(t, "/live"+path)
		}
	}
	for _, s := range []*session{guest, admin} {
		t.Run("graphs are what the API says to "+s.account, func(t *testing.T) { s.saysTheGraphs(t) })
		t.Run("pods are what the API says to "+s.account, func(t *testing.T) { s.saysThePods(t) })
		t.Run("replicas are what the API says to "+s.account, func(t *testing.T) { s.saysTheScale(t) })
		t.Run("a broken graph has the operator's cause for "+s.account, func(t *testing.T) { s.saysTheCause(t) })
		t.Run("nodes are what the API says to "+s.account, func(t *testing.T) { s.saysTheNodes(t) })
	}
	t.Run("a question is answered", func(t *testing.T) { guest.asks(t) })
	t.Run("a deleted pod goes and its successor comes", func(t *testing.T) { replaced(t, live) })
	t.Run("each kind is watched once", func(t *testing.T) { watchedOnce(t, 0, guest, admin) })
	t.Run("pages outlive a restart of the API server", func(t *testing.T) { outlives(t, guest, live) })
	t.Run("nothing is written", func(t *testing.T) { writesNothing(t, guest, admin) })
}

// settled waits until the graphs are as they will stay.
func settled(t *testing.T) {
	t.Helper()
	eventually(t, "the graphs to be as they will stay", func(ctx context.Context) error {
		good, err := ready(ctx, healthy)
		if err != nil {
			return err
		}
		bad, err := ready(ctx, ailing)
		if err != nil {
			return err
		}
		if good.Status != metav1.ConditionTrue || bad.Reason != "ImageNotFound" {
			return fmt.Errorf("%s: %+v; %s: %+v", healthy, good, ailing, bad)
		}
		return nil
	})
}

// read gets a graph from the API server.
func read(ctx context.Context, name string) (*v1alpha1.DynamoGraphDeployment, error) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	return dgd, cluster.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, dgd)
}

func ready(ctx context.Context, name string) (metav1.Condition, error) {
	dgd, err := read(ctx, name)
	if err != nil {
		return metav1.Condition{}, err
	}
	found := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
	if found == nil {
		return metav1.Condition{}, errors.New(name + " has no condition yet")
	}
	return *found, nil
}

// podsOf lists a graph's pods from the API server.
func podsOf(ctx context.Context, graph string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := cluster.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelGraphName: graph})
	return pods.Items, err
}

func gpus(pod corev1.Pod) int64 {
	n := int64(0)
	for _, c := range pod.Spec.Containers {
		n += c.Resources.Limits.Name("nvidia.com/gpu", "").Value()
	}
	return n
}

// same compares what a page says with what is so, until they agree: either may be a
// moment behind.
func (s *session) same(t *testing.T, path string, said func(page string) any, so func(ctx context.Context) (any, error)) {
	t.Helper()
	eventually(t, path+" to say what is so", func(ctx context.Context) error {
		want, err := so(ctx)
		if err != nil {
			return err
		}
		page, err := s.get(ctx, path)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, said(page)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func (s *session) saysTheGraphs(t *testing.T) {
	s.same(t, "/", func(page string) any {
		return table(page, "Graph", "State", "First cause", "Services", "GPUs")
	}, func(ctx context.Context) (any, error) {
		want := map[string][]string{}
		graphs, err := names(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range graphs {
			dgd, err := read(ctx, name)
			if err != nil {
				return nil, err
			}
			condition, err := ready(ctx, name)
			if err != nil {
				return nil, err
			}
			pods, err := podsOf(ctx, name)
			if err != nil {
				return nil, err
			}
			state, cause, held := "ready", "none", int64(0)
			sleeps := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionDormant)
			switch {
			case condition.Status != metav1.ConditionTrue:
				state, cause = string(dgd.Status.State), condition.Message
			case sleeps != nil && sleeps.Status == metav1.ConditionTrue:
				state, cause = "asleep", sleeps.Message
			}
			for _, pod := range pods {
				held += gpus(pod)
			}
			var services []string
			for service, spec := range dgd.Spec.Services {
				services = append(services, fmt.Sprintf("%s %d/%d", service, ptr.Deref(dgd.Status.Services[service].ReadyReplicas, 0), *spec.Replicas))
			}
			slices.Sort(services)
			want[name] = []string{state, cause, strings.Join(services, " "), strconv.FormatInt(held, 10)}
		}
		return want, nil
	})
}

// names are those of all graphs.
func names(ctx context.Context) ([]string, error) {
	var list v1alpha1.DynamoGraphDeploymentList
	err := cluster.Client.List(ctx, &list, client.InNamespace(namespace))
	var all []string
	for _, dgd := range list.Items {
		all = append(all, dgd.Name)
	}
	return all, err
}

// explained is what kubectl dynamo scale explain tells of a graph.
func explained(ctx context.Context, name string) (scale.Explanation, error) {
	var e scale.Explanation
	out, err := exec.CommandContext(ctx, filepath.Join(binDir, "kubectl-dynamo"), "scale", "explain", name, "--kubeconfig", cluster.Kubeconfig, "-n", namespace, "-o", "json").Output()
	if err != nil {
		return e, err
	}
	err = json.Unmarshal(out, &e)
	return e, err
}

func (s *session) saysTheScale(t *testing.T) {
	graphs, err := names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range graphs {
		s.same(t, graph(name)+"/scaling", func(page string) any {
			said := map[string][]string{}
			for name, row := range table(page, "Service", "Wanted", "Granted", "Ready", "GPUs", "Asked for by") {
				service, _, _ := strings.Cut(name, " ") // its role stands below
				said[service] = row
			}
			return said
		}, func(ctx context.Context) (any, error) {
			dgd, err := read(ctx, name)
			if err != nil {
				return nil, err
			}
			e, err := explained(ctx, name)
			want := map[string][]string{}
			for _, x := range e.Services {
				spec, status := dgd.Spec.Services[x.Name], dgd.Status.Services[x.Name]
				want[x.Name] = []string{fmt.Sprint(*spec.Replicas), fmt.Sprint(x.Granted), fmt.Sprint(ptr.Deref(status.ReadyReplicas, 0)), fmt.Sprint(x.GPUs), x.By}
			}
			return want, err
		})
	}
}

func (s *session) saysThePods(t *testing.T) {
	graphs, err := names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range graphs {
		s.same(t, graph(name), func(page string) any {
			return table(page, "Pod", "State", "Node", "GPUs", "Logs")
		}, func(ctx context.Context) (any, error) {
			pods, err := podsOf(ctx, name)
			want := map[string][]string{}
			for _, pod := range pods {
				var containers []string
				for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
					containers = append(containers, c.Name)
				}
				want[pod.Name] = []string{stateOf(pod), pod.Spec.NodeName, strconv.FormatInt(gpus(pod), 10), strings.Join(containers, " ")}
			}
			return want, err
		})
	}
}

// stateOf is what kubectl shows of a pod, but that one that runs is ready.
func stateOf(pod corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil:
			return s.State.Waiting.Reason
		case s.Ready:
			return "Ready"
		}
	}
	return string(pod.Status.Phase)
}

var why = regexp.MustCompile(`(?s)<h2 id="h-why">.*?<p class="cause">(.*?)</p>`)

// saysTheCause: the explanation that the console looks for itself, with its own rights,
// is the one that the operator reports in its condition.
func (s *session) saysTheCause(t *testing.T) {
	s.same(t, graph(ailing), func(page string) any {
		cause := ""
		if found := why.FindStringSubmatch(page); found != nil {
			cause = words(found[1])
		}
		return []string{cause, strings.Join(table(page, "Condition", "State", "What it says")["Ready"], ": ")}
	}, func(ctx context.Context) (any, error) {
		dgd, err := read(ctx, ailing)
		if err != nil {
			return nil, err
		}
		condition, err := ready(ctx, ailing)
		return []string{
			condition.Reason + ": " + dgd.Status.Services["decode"].Message,
			"false: " + condition.Reason + " " + condition.Message,
		}, err
	})
	page, err := s.get(t.Context(), graph(healthy))
	if err != nil || why.MatchString(page) {
		t.Errorf("a graph that is ready is explained: %s, %v", words(page), err)
	}
}

func (s *session) saysTheNodes(t *testing.T) {
	s.same(t, "/cluster", func(page string) any {
		return table(page, "Node", "State", "Held")
	}, func(ctx context.Context) (any, error) {
		var nodes corev1.NodeList
		var pods corev1.PodList
		if err := errors.Join(cluster.Client.List(ctx, &nodes), cluster.Client.List(ctx, &pods)); err != nil {
			return nil, err
		}
		want := map[string][]string{}
		for _, node := range nodes.Items {
			held, has := int64(0), node.Status.Allocatable["nvidia.com/gpu"]
			for _, pod := range pods.Items {
				if pod.Spec.NodeName == node.Name {
					held += gpus(pod)
				}
			}
			percent := held * 100 / has.Value()
			want[node.Name] = []string{"ready", fmt.Sprintf("%d %% %d of %d", percent, held, has.Value())}
		}
		return want, nil
	})
	eventually(t, "doctor to have looked", func(ctx context.Context) error {
		page, err := s.get(ctx, "/cluster")
		if err == nil && !strings.Contains(page, "Looked ") {
			err = errors.New(words(page))
		}
		return err
	})
}

var (
	option = regexp.MustCompile(`<option value="([^"]*)"`)
	answer = regexp.MustCompile(`/answers/[0-9a-f]+`)
)

// asks puts a question through the API server to the frontend.
func (s *session) asks(t *testing.T) {
	var model string
	eventually(t, "a model to ask", func(ctx context.Context) error {
		form, err := s.get(ctx, graph(healthy)+"/models")
		if err != nil {
			return err
		}
		found := option.FindStringSubmatch(form)
		if found == nil {
			return errors.New(words(form))
		}
		model = found[1]
		return nil
	})
	fragment, err := s.page(t.Context(), http.MethodPost, graph(healthy)+"/questions", url.Values{"model": {model}, "question": {"Why do graphs never idle?"}})
	if err != nil || !answer.MatchString(fragment) {
		t.Fatalf("%s: %v", fragment, err)
	}
	came := ""
	stream := s.follow(t, answer.FindString(fragment))
	stream.until(t, "the end of the answer", func(blocks map[string]string) error {
		if _, done := blocks["done"]; !done {
			return errors.New("it goes on")
		}
		came = words(blocks["came"])
		return nil
	})
	stream.mu.Lock()
	pieces := stream.pieces
	stream.mu.Unlock()
	if pieces < 2 {
		t.Errorf("%d pieces are no stream: %s", pieces, came)
	}
	pods, err := podsOf(t.Context(), healthy)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Time to first token [\d.,]+ ms`, `Between tokens [\d.,]+ ms`, `Tokens \d+`, `Whole answer [\d.,]+ ms`, "Answered by " + named(pods, "decode") + " prompt computed by " + named(pods, "prefill") + "$"} {
		if !regexp.MustCompile(want).MatchString(came) {
			t.Errorf("%q is not in %q", want, came)
		}
	}
	summary.Line(t, "console: a question through the API server: %d pieces; %s", pieces, came)
}

// named is the pod of a service that has one.
func named(pods []corev1.Pod, service string) string {
	for _, p := range pods {
		if p.Labels[v1alpha1.LabelComponent] == service && p.DeletionTimestamp == nil {
			return p.Name
		}
	}
	return "none"
}

// replaced deletes a pod and sees on an open page what comes of it.
func replaced(t *testing.T, live *stream) {
	pods, err := podsOf(t.Context(), healthy)
	if err != nil {
		t.Fatal(err)
	}
	old := named(pods, "decode")
	states := func(blocks map[string]string) map[string][]string {
		return table(blocks["graph-services"], "Pod", "State")
	}
	live.until(t, old+" ready", func(blocks map[string]string) error { return is(states(blocks), old, "Ready") })
	begin := time.Now()
	since := func() time.Duration { return time.Since(begin).Round(10 * time.Millisecond) }
	if err := cluster.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: old}}); err != nil {
		t.Fatal(err)
	}
	live.until(t, old+" ending", func(blocks map[string]string) error {
		if is(states(blocks), old, "Ready") == nil {
			return errors.New("it is still ready")
		}
		return nil
	})
	seen := since()
	live.until(t, old+" gone", func(blocks map[string]string) error {
		if found := states(blocks); found[old] != nil {
			return fmt.Errorf("%v", found)
		}
		return nil
	})
	gone := since()
	var next string
	eventually(t, "a successor", func(ctx context.Context) error {
		pods, err := podsOf(ctx, healthy)
		if next = named(pods, "decode"); err == nil && (next == "none" || next == old) {
			err = errors.New("there is none")
		}
		return err
	})
	live.until(t, next+" ready", func(blocks map[string]string) error { return is(states(blocks), next, "Ready") })
	summary.Line(t, "console: a deleted pod is shown as ending after %s, is gone after %s, and its successor is ready after %s", seen, gone, since())
}

func is(states map[string][]string, pod, state string) error {
	if got := states[pod]; len(got) != 1 || got[0] != state {
		return fmt.Errorf("%s is %v of %v", pod, got, states)
	}
	return nil
}

// watched are the kinds that exist in this cluster of those that a console watches.
var watched = []string{"deployments", "dynamocomponentdeployments", "dynamographdeploymentrequests", "dynamographdeployments", "dynamographdeploymentscalingadapters", "dynamomodels", "events", "horizontalpodautoscalers", "nodes", "pods"}

// watchedOnce: however many pages are open, each account has one watch of each kind.
// Watches from before a place in the audit log do not count.
func watchedOnce(t *testing.T, place int64, all ...*session) {
	for _, s := range all {
		eventually(t, s.account+" to watch each kind once", func(context.Context) error {
			open := map[string]string{}
			err := auditlog.Of(cluster.Kubeconfig).Since(place, func(e auditlog.Entry) {
				if e.Verb != "watch" || e.User.Username != s.account {
					return
				}
				delete(open, e.ID)
				if e.Stage == auditlog.StageStarted && e.Status.Code == http.StatusOK {
					open[e.ID] = e.Ref.Resource
				}
			})
			var kinds []string
			for _, kind := range open {
				kinds = append(kinds, kind)
			}
			slices.Sort(kinds)
			if diff := cmp.Diff(watched, kinds); err == nil && diff != "" {
				err = errors.New(diff)
			}
			return err
		})
	}
}

// outlives kills the API server, which is started again: open pages say so, go on
// showing what was known, and then what is new.
func outlives(t *testing.T, s *session, live *stream) {
	place, err := auditlog.Of(cluster.Kubeconfig).End()
	if err != nil {
		t.Fatal(err)
	}
	servers, err := process.Of(filepath.Dir(cluster.Kubeconfig), "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	since := func() time.Duration { return time.Since(begin).Round(10 * time.Millisecond) }
	if err := process.Kill(servers[0]); err != nil {
		t.Fatal(err)
	}
	const words = "The API server has not answered since"
	live.until(t, "that the API server does not answer", func(blocks map[string]string) error {
		if !strings.Contains(blocks["banner"], words) {
			return errors.New("no banner")
		}
		return nil
	})
	away := since()
	page, err := s.get(t.Context(), graph(healthy))
	if err != nil || len(table(page, "Pod")) < 3 {
		t.Errorf("the page does not show what was known: %s, %v", page, err)
	}
	live.until(t, "that the API server answers", func(blocks map[string]string) error {
		if strings.Contains(blocks["banner"], words) {
			return errors.New(blocks["banner"])
		}
		return nil
	})
	back := since()
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: healthy}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"services":{"decode":{"replicas":2}}}}`))
	if err := cluster.Client.Patch(t.Context(), dgd, patch); err != nil {
		t.Fatal(err)
	}
	changed := since()
	live.until(t, "the change of the graph", func(blocks map[string]string) error {
		if !strings.Contains(blocks["graph-services"], "of 2 ready") {
			return errors.New("it is not there")
		}
		return nil
	})
	shown := since()
	live.until(t, "the pods of the change", func(blocks map[string]string) error {
		if !strings.Contains(blocks["graph-services"], "2 of 2 ready") {
			return errors.New("they are not ready")
		}
		return nil
	})
	summary.Line(t, "console: a killed API server is told after %s and its return after %s; a change made after %s is shown after %s, its pods after %s", away, back, changed, shown, since())
	watchedOnce(t, place, s)
	s.saysTheGraphs(t)
	s.saysThePods(t)
}

// writesNothing: all that was looked at asked for no change, but for questions, which
// are a POST to a frontend.
func writesNothing(t *testing.T, all ...*session) {
	reads, questions := map[string]int{}, map[string]int{}
	err := auditlog.Of(cluster.Kubeconfig).Since(0, func(e auditlog.Entry) {
		if !slices.ContainsFunc(all, func(s *session) bool { return s.account == e.User.Username }) {
			return
		}
		switch {
		case !e.Writes():
			reads[e.User.Username]++
		case e.String() == "create services/proxy":
			questions[e.User.Username]++
		default:
			t.Errorf("%s: %s %s", e.User.Username, e, e.URI)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if reads[s.account] == 0 {
			t.Errorf("nothing of %s is in the audit log", s.account)
		}
		summary.Line(t, "console: %s: %d entries of reads, %d of questions, no write", s.account, reads[s.account], questions[s.account])
	}
	if questions[all[0].account] == 0 {
		t.Error("the question is not in the audit log")
	}
}
