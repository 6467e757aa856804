package console

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/browser"
)

// many is what make console asks for.
var many = flag.Bool("many", false, "measure a console of 200 graphs and 1,000 pods, and nothing else")

// How many there are, and what a console of them may take.
const (
	manyGraphs, podsOfEach = 200, 5
	manyNodes              = 125
	wantFirstPage          = time.Second
	wantMiB                = 150
	wantShown              = 2 * time.Second
)

// TestManyGraphs measures a console as a program of its own, with a browser that has
// several pages open while pods change. Nothing runs the graphs: their objects are
// written as the operator and the kubelets would leave them.
func TestManyGraphs(t *testing.T) {
	if !*many {
		t.Skip("make console measures 200 graphs")
	}
	tab := browser.Open(t, true)
	c := server(t)
	populate(t, c)
	const name = "console-many"
	config := account(t, c, name, documented)
	user := "system:serviceaccount:" + namespace + ":" + name

	begin := time.Now()
	ui := startUI(t, c, config)
	started := time.Since(begin)
	s := enter(t, user, ui.url)
	cold := first(t, s)
	begin = time.Now()
	text, err := s.get(t.Context(), "/")
	warm := time.Since(begin)
	if err != nil || len(table(text, "Graph")) != manyGraphs {
		t.Fatalf("the page has %d graphs: %v", len(table(text, "Graph")), err)
	}
	inBrowser := opened(tab, t, s)
	// More pages, all live, while a fifth of the pods change.
	for i := range 4 {
		s.follow(t, fmt.Sprintf("/live/graphs/team-%d/graph-%03d", i, i))
	}
	for _, path := range []string{"/", "/cluster", "/models", "/requests"} {
		s.follow(t, "/live"+path)
	}
	shown := changed(tab, t, c, s)
	churn(t, c)
	peak := ui.peak(t)
	kinds, writes := asked(t, c, user)

	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d GRAPHS, %d PODS\tWANTED\tMEASURED\t\n", manyGraphs, manyGraphs*podsOfEach)
	line := func(what, wanted string, measured any, good bool) {
		verdict := "met"
		if !good {
			verdict = "MISSED"
			t.Errorf("%s: %v, wanted %s", what, measured, wanted)
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\n", what, wanted, measured, verdict)
	}
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	fmt.Fprintf(w, "the program prints its URL\t\t%s\t\n", round(started))
	line("first page with all graphs, nothing read yet", wantFirstPage.String(), round(cold), cold < wantFirstPage)
	line("page with all graphs, after that", wantFirstPage.String(), round(warm), warm < wantFirstPage)
	line("page with all graphs, in Chromium", wantFirstPage.String(), round(inBrowser), inBrowser < wantFirstPage)
	line("a pod that fails is in Chromium's page", wantShown.String(), round(shown), shown < wantShown)
	line("largest resident size (VmHWM)", fmt.Sprintf("%d MiB", wantMiB), fmt.Sprintf("%d MiB", peak), peak < wantMiB)
	line("watches of a kind and user", "1", kinds, kinds == 1)
	line("writes", "0", writes, writes == 0)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
}

// server is an API server that nothing works at.
func server(t *testing.T) *localenv.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	folder := t.TempDir()
	log, err := os.Create(filepath.Join(folder, "localcluster.log"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := localenv.Up(ctx, localenv.Options{BinDir: binDir, Dir: filepath.Join(folder, "cluster"), Nodes: 1, ServerOnly: true, Log: log, Args: []string{"--audit-log"}})
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // it goes with the folder
		t.Fatalf("%v\n%s", err, said)
	}
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := c.InstallAPI(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// populate writes what 200 graphs leave in a cluster.
func populate(t *testing.T, c *localenv.Cluster) {
	t.Helper()
	var work []func() error
	write := func(o client.Object, status func()) error {
		if err := c.Client.Create(t.Context(), o); err != nil || status == nil {
			return err
		}
		status()
		return c.Client.Status().Update(t.Context(), o)
	}
	for _, name := range []string{namespace, "team-0", "team-1", "team-2", "team-3"} {
		if err := errors.Join(write(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil),
			write(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range manyNodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", i), Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}}
		work = append(work, func() error {
			return write(node, func() {
				node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), "cpu": resource.MustParse("128")}
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			})
		})
	}
	for i := range manyGraphs {
		team, name := fmt.Sprintf("team-%d", i%4), fmt.Sprintf("graph-%03d", i)
		dgd := aGraph(team, name)
		work = append(work, func() error { return write(dgd, func() { reported(dgd, i) }) })
		for n := range podsOfEach {
			pod := aPod(team, name, i*podsOfEach+n, n)
			work = append(work, func() error { return write(pod, func() { kubelet(pod, i%10 != 0 || n == 0) }) })
		}
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name + ".1"}, InvolvedObject: corev1.ObjectReference{Kind: "DynamoGraphDeployment", Namespace: team, Name: name},
			Reason: "Ready", Message: "3 of 3 services ready", LastTimestamp: metav1.Now(), Type: corev1.EventTypeNormal,
		}
		work = append(work, func() error { return write(event, nil) })
		for _, service := range []string{"frontend", "prefill", "decode"} {
			labels := map[string]string{"app": name + "-" + service}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name + "-" + service}, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: aPod(team, name, 0, 2).Spec},
			}}
			d.Spec.Template.Spec.NodeName = ""
			work = append(work, func() error { return write(d, nil) })
		}
	}
	if err := together(work); err != nil {
		t.Fatal(err)
	}
}

// together does work on several connections at a time.
func together(work []func() error) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	slots := make(chan struct{}, 8)
	for _, do := range work {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := do(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	group.Wait()
	return failed
}

func aGraph(team, name string) *v1alpha1.DynamoGraphDeployment {
	service := func(kind v1alpha1.ComponentType, sub string, replicas int32) *v1alpha1.SharedSpec {
		return &v1alpha1.SharedSpec{ComponentType: kind, SubComponentType: sub, Replicas: &replicas}
	}
	return &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}, Spec: v1alpha1.DynamoGraphDeploymentSpec{
		BackendFramework: v1alpha1.BackendFrameworkVLLM, Services: map[string]*v1alpha1.SharedSpec{
			"Frontend": service(v1alpha1.ComponentTypeFrontend, "", 1), "prefill": service(v1alpha1.ComponentTypeWorker, "prefill", 1), "decode": service(v1alpha1.ComponentTypeWorker, "decode", 3),
		},
	}}
}

// reported is a graph as the operator reports it; one of ten is broken.
func reported(dgd *v1alpha1.DynamoGraphDeployment, i int) {
	of := func(name string, ready, replicas int32) v1alpha1.ServiceReplicaStatus {
		return v1alpha1.ServiceReplicaStatus{ComponentKind: v1alpha1.ComponentKindDeployment, ComponentName: dgd.Name + "-" + name, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: &ready}
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllServicesReady, Message: "3 of 3 services ready", LastTransitionTime: metav1.Now(), ObservedGeneration: dgd.Generation}
	dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: dgd.Generation, State: v1alpha1.GraphStateSuccessful, Services: map[string]v1alpha1.ServiceReplicaStatus{
		"Frontend": of("frontend", 1, 1), "prefill": of("prefill", 1, 1), "decode": of("decode", 3, 3),
	}}
	if i%10 == 0 {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "ContainerCrashed", "decode: container main exited with code 1: CUDA out of memory"
		dgd.Status.State = v1alpha1.GraphStatePending
		broken := of("decode", 0, 3)
		broken.Message = "container main exited with code 1: CUDA out of memory"
		dgd.Status.Services["decode"] = broken
	}
	dgd.Status.Conditions = []metav1.Condition{condition}
}

// aPod is as large as those that the operator makes.
func aPod(team, of string, number, n int) *corev1.Pod {
	service, kind := "decode", "worker"
	switch n {
	case 0:
		service, kind = "Frontend", "frontend"
	case 1:
		service = "prefill"
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: team, Name: fmt.Sprintf("%s-%s-7c9d5b6c9f-%05d", of, strings.ToLower(service), n),
			Labels: map[string]string{v1alpha1.LabelGraphName: of, v1alpha1.LabelComponent: service, v1alpha1.LabelComponentType: kind},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%03d", number/8), Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/vllm-runtime:1.4.0", Command: []string{"python3", "-m", "dynamo.vllm"}, Args: []string{"--model", "Qwen/Qwen3-32B"},
		}}},
	}
	for i := range 40 {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("DYN_SETTING_%02d", i), Value: strings.Repeat("value ", 10)})
	}
	if kind == "worker" {
		limits := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits}
	}
	return pod
}

func kubelet(pod *corev1.Pod, ready bool) {
	status := corev1.ConditionTrue
	state := corev1.ContainerStatus{Name: "main", Ready: true, Image: pod.Spec.Containers[0].Image, ImageID: "sha256:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
	if !ready {
		status, state.Ready = corev1.ConditionFalse, false
		state.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		state.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "CUDA out of memory"}}
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}, ContainerStatuses: []corev1.ContainerStatus{state}}
}

// ui is a console as people start it.
type ui struct {
	process *exec.Cmd
	url     string
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=[0-9a-f]+`)

func startUI(t *testing.T, c *localenv.Cluster, config *rest.Config) ui {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(filepath.Join(binDir, "kubectl-dynamo"), "ui", "--all-namespaces", "--kubeconfig", file)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(process.Process.Signal(syscall.SIGINT), process.Wait()); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at := address.FindString(lines.Text()); at != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }() // until it ends
			return ui{process, at}
		}
	}
	t.Fatalf("the console printed no URL: %v", lines.Err())
	return ui{}
}

// peak is the largest resident size so far, by the kernel's own account, in MiB.
func (u ui) peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if size, found := strings.CutPrefix(line, "VmHWM:"); found {
			var kib int
			if _, err := fmt.Sscan(size, &kib); err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatal("the kernel does not say how large the console was")
	return 0
}

// first is how long it takes from the first request until a page has all graphs: on the
// page itself, or by what it is sent afterwards.
func first(t *testing.T, s *session) time.Duration {
	t.Helper()
	begin := time.Now()
	text, err := s.get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if len(table(text, "Graph")) == manyGraphs {
		return time.Since(begin)
	}
	s.follow(t, "/live/").until(t, "all graphs", func(blocks map[string]string) error {
		if n := len(table(blocks["graphs-table"], "Graph")); n != manyGraphs {
			return fmt.Errorf("%d graphs", n)
		}
		return nil
	})
	return time.Since(begin)
}

// opened is how long a browser takes from a click to a page with all graphs.
func opened(tab context.Context, t *testing.T, s *session) time.Duration {
	t.Helper()
	var rows int
	var taken float64
	err := chromedp.Run(tab, network.SetCookie(s.cookie.Name, s.cookie.Value).WithURL(s.base).WithHTTPOnly(true).WithSameSite(network.CookieSameSiteStrict),
		chromedp.Navigate(s.base+"/models"), chromedp.WaitVisible("main h1"), // the assets are read
		chromedp.Navigate(s.base+"/"), chromedp.WaitVisible(".graphs"),
		chromedp.Evaluate(`document.querySelectorAll(".graphs tbody tr").length`, &rows),
		chromedp.Evaluate(`performance.getEntriesByType("navigation")[0].loadEventEnd`, &taken))
	if err != nil || rows != manyGraphs {
		t.Fatalf("%d graphs in the browser: %v", rows, err)
	}
	return time.Duration(taken * float64(time.Millisecond))
}

// changed is how long it takes until a graph that breaks is shown so.
func changed(tab context.Context, t *testing.T, c *localenv.Cluster, s *session) time.Duration {
	t.Helper()
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: "team-1", Name: "graph-001-decode-7c9d5b6c9f-00002"}
	state := fmt.Sprintf(`document.querySelector("#pod-%s .state")`, key.Name)
	if err := errors.Join(c.Client.Get(t.Context(), key, pod),
		chromedp.Run(tab, chromedp.Navigate(s.base+"/graphs/team-1/graph-001"), chromedp.Poll(state+`?.innerText.includes("Ready")`, nil))); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	kubelet(pod, false)
	if err := errors.Join(c.Client.Status().Update(t.Context(), pod),
		chromedp.Run(tab, chromedp.Poll(state+`?.innerText.includes("CrashLoopBackOff")`, nil))); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// churn changes a fifth of the pods, three times each.
func churn(t *testing.T, c *localenv.Cluster) {
	t.Helper()
	var pods corev1.PodList
	for round := range 3 {
		if err := c.Client.List(t.Context(), &pods); err != nil {
			t.Fatal(err)
		}
		var work []func() error
		for i := range pods.Items {
			if p := &pods.Items[i]; i%5 == 0 {
				kubelet(p, round%2 == 1)
				work = append(work, func() error { return c.Client.Status().Update(t.Context(), p) })
			}
		}
		if err := together(work); err != nil {
			t.Fatal(err)
		}
	}
}

// asked is the most watches of one kind that were open at a time, and how many requests
// were to change something.
func asked(t *testing.T, c *localenv.Cluster, user string) (watches, writes int) {
	t.Helper()
	open := map[string]string{}
	err := auditlog.Of(c.Kubeconfig).Since(0, func(e auditlog.Entry) {
		if e.User.Username != user {
			return
		}
		if e.Writes() {
			writes++
			t.Logf("%s %s", e, e.URI)
		}
		if e.Verb != "watch" {
			return
		}
		delete(open, e.ID)
		if e.Stage == auditlog.StageStarted && e.Status.Code == http.StatusOK {
			open[e.ID] = e.Ref.Resource
			n := 0
			for _, kind := range open {
				if kind == e.Ref.Resource {
					n++
				}
			}
			watches = max(watches, n)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, kind := range open {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	t.Logf("watched at the end: %s", strings.Join(kinds, ", "))
	return watches, writes
}
