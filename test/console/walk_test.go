package console

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/browser"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// pictures is what make console asks for.
var pictures = flag.String("pictures", "", "folder for what a browser sees of a running cluster; without it none walks (make console)")

// More graphs by name.
const (
	// rollingGraph is one whose workers are replaced a generation at a time.
	rollingGraph = "rolling"
	// dormantGraph has gone to sleep.
	dormantGraph = "nightly"
	// limitedGraph has a planner that only advises, and a budget that is less than what it
	// is to have.
	limitedGraph = "planned"
)

// TestABrowserWalksARunningCluster reads every page in Chromium, and holds what stands
// there against the API, with a graph that is well, one that is rolled out, one that is
// broken, one that sleeps and one that lacks GPUs. It asks, kills a pod, and promotes and
// wakes by a button.
func TestABrowserWalksARunningCluster(t *testing.T) {
	if *pictures == "" {
		t.Skip("make console walks the pages of a running cluster in a browser")
	}
	ctx := browser.Open(t, true)
	settled(t)
	request(t)
	bed(t)
	limit(t)
	roll(t)
	slept(t)
	stop := busy(t, healthy, rollingGraph)
	defer stop()

	s := open(t, "console-browser", everything, func(o *console.Options) { o.AllowChanges = true })
	b := &walker{s, ctx}
	s.see = b.read
	b.enter(t)
	t.Run("graphs are what the API says", s.saysTheGraphs)
	t.Run("pods are what the API says", s.saysThePods)
	t.Run("replicas are what the API says", s.saysTheScale)
	t.Run("a broken graph has the operator's cause", s.saysTheCause)
	t.Run("nodes are what the API says", s.saysTheNodes)
	t.Run("a rollout is what the API says", b.saysTheRollout)
	t.Run("a graph that sleeps is what the API says", b.saysTheSleep)
	t.Run("budgets are what the API says", b.saysTheBudgets)
	t.Run("decisions are what the planner says", b.saysTheDecisions)
	t.Run("requests are what the API says", b.saysTheRequest)
	t.Run("models are what the API says", b.saysTheModel)
	t.Run("a question is answered", b.asks)
	t.Run("a killed pod is shown", b.losesAPod)
	t.Run("pages look as they should", b.takesPictures)
	t.Run("a button promotes", b.promotes)
	t.Run("a button wakes", b.wakes)
}

// walker is a session that a browser has.
type walker struct {
	*session
	browser context.Context
}

// enter gives the browser the session's cookie, and has it agree to what it is asked.
func (b *walker) enter(t *testing.T) {
	t.Helper()
	chromedp.ListenTarget(b.browser, func(event any) {
		if _, asked := event.(*page.EventJavascriptDialogOpening); asked {
			go func() { _ = chromedp.Run(b.browser, page.HandleJavaScriptDialog(true)) }() // a test that waits for it fails
		}
	})
	err := chromedp.Run(b.browser, network.SetCookie(b.cookie.Name, b.cookie.Value).WithURL(b.base).WithHTTPOnly(true).WithSameSite(network.CookieSameSiteStrict),
		chromedp.Navigate(b.base+"/"), chromedp.WaitVisible("main h1"))
	if err != nil {
		t.Fatal(err)
	}
}

// read opens a page and returns what the browser has made of it.
func (b *walker) read(_ context.Context, path string) (string, error) {
	var text string
	err := chromedp.Run(b.browser, chromedp.Navigate(b.base+path), chromedp.WaitVisible("main h1"), chromedp.Poll("window.htmx !== undefined", nil),
		chromedp.OuterHTML("html", &text))
	return text, err
}

func (b *walker) saysTheRollout(t *testing.T) {
	b.same(t, graph(rollingGraph)+"/rollout", func(page string) any {
		said := map[string][]string{}
		for _, row := range rows(page) {
			switch {
			case row["Generation"] != "" && row["Routable"] != "":
				said[row["Generation"]+" "+row["Service"]] = []string{row["Replicas"], row["Routable"], row["Starting"], row["Leaving"], row["Failing"]}
			case row["Floor"] != "":
				said[row["Service"]] = []string{row["Serving"], row["Floor"], row["Desired"], row["Lowest"]}
			}
		}
		return said
	}, func(ctx context.Context) (any, error) {
		dgd, err := read(ctx, rollingGraph)
		if err != nil || dgd.Status.Rollout == nil {
			return nil, errors.Join(err, errors.New("no rollout"))
		}
		so := map[string][]string{}
		for _, g := range dgd.Status.Rollout.Generations {
			for role, n := range g.Roles {
				so[g.ID+" "+role] = numbers(n.Replicas, n.Routable, n.Starting, n.Leaving, n.Failing)
			}
		}
		for role, n := range dgd.Status.Rollout.Roles {
			so[role] = numbers(n.Effective, n.Floor, n.Desired, n.Lowest)
		}
		return so, nil
	})
	var history string
	err := chromedp.Run(b.browser, chromedp.Navigate(b.base+graph(rollingGraph)+"/rollout"), chromedp.WaitVisible("[data-label=Result]"), chromedp.Text("#h-history + div", &history))
	if err != nil || !strings.Contains(history, "completed") {
		t.Errorf("the history does not tell of the first rollout: %s, %v", history, err)
	}
}

func numbers(all ...int32) []string {
	var out []string
	for _, n := range all {
		out = append(out, strconv.Itoa(int(n)))
	}
	return out
}

// aRequest is answered by the performance model, and deploys nothing.
const aRequest = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentRequest
metadata: {name: fast-chat}
spec:
  model: Qwen/Qwen3-32B
  backend: vllm
  profilingConfig:
    profilerImage: "dynamo-profiler:dev"
    config: {sla: {isl: 3000, osl: 300, ttft: 500, itl: 25}, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}, hardware: {numGpusPerNode: 8, maxNumGpusPerEngine: 8}}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoModel
metadata: {name: base}
spec: {modelName: Qwen/Qwen3-0.6B, baseModelName: Qwen/Qwen3-0.6B, modelType: base}
`

// request asks for a graph, and names a model.
func request(t *testing.T) {
	t.Helper()
	deploy(t, aRequest)
	eventually(t, "the request to be answered", func(ctx context.Context) error {
		var r v1alpha1.DynamoGraphDeploymentRequest
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "fast-chat"}, &r); err != nil {
			return err
		}
		if r.Status.State != v1alpha1.RequestStateReady {
			return fmt.Errorf("%s: %+v", r.Status.State, r.Status.Conditions)
		}
		return nil
	})
}

func (b *walker) saysTheRequest(t *testing.T) {
	b.same(t, "/requests", func(page string) any { return table(page, "Request", "State", "Model", "Engine") }, func(ctx context.Context) (any, error) {
		var all v1alpha1.DynamoGraphDeploymentRequestList
		err := cluster.Client.List(ctx, &all, client.InNamespace(namespace))
		so := map[string][]string{}
		for _, r := range all.Items {
			so[r.Name+" "+r.Namespace] = []string{strings.ToLower(string(r.Status.State)), r.Spec.Model, string(r.Spec.Backend)}
		}
		return so, err
	})
	text, err := b.read(t.Context(), "/requests/"+namespace+"/fast-chat")
	if err != nil || !strings.Contains(text, "Each mark is a candidate") || !strings.Contains(words(text), "Configuration") {
		t.Errorf("the request does not show what was chosen: %s, %v", words(text), err)
	}
}

func (b *walker) saysTheModel(t *testing.T) {
	b.same(t, "/models", func(page string) any { return table(page, "Name", "Pods") }, func(ctx context.Context) (any, error) {
		var all v1alpha1.DynamoModelList
		err := cluster.Client.List(ctx, &all, client.InNamespace(namespace))
		so := map[string][]string{}
		for _, m := range all.Items {
			so[m.Name+" "+m.Namespace] = []string{fmt.Sprintf("%d/%d", m.Status.ReadyEndpoints, m.Status.TotalEndpoints)}
		}
		return so, err
	})
}

// roll deploys a graph and changes its workers, up to the step at which that waits.
func roll(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.NewReplacer(":0.8.0", ":1.4.0", "replicas: 1", "replicas: 2", "name: quickstart", "name: "+rollingGraph+"\n  annotations: {"+v1alpha1.AnnotationRolloutSteps+`: "1 hold, 50% hold"}`).Replace(string(text))
	deploy(t, manifest)
	eventually(t, "a revision to go back to", func(ctx context.Context) error {
		var all appsv1.ControllerRevisionList
		if err := cluster.Client.List(ctx, &all, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelGraphName: rollingGraph}); err != nil {
			return err
		}
		if !slices.ContainsFunc(all.Items, func(r appsv1.ControllerRevision) bool { return revision.ResultOf(&r) == revision.Completed }) {
			return fmt.Errorf("none of %d revisions is completed", len(all.Items))
		}
		serves, err := ready(ctx, rollingGraph)
		if err == nil && serves.Status != metav1.ConditionTrue {
			err = fmt.Errorf("not ready: %s", serves.Message)
		}
		return err
	})
	const image = `{"extraPodSpec":{"mainContainer":{"image":"nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.5.0"}}}`
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rollingGraph}}
	if err := cluster.Client.Patch(t.Context(), dgd, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"services":{"prefill":%[1]s,"decode":%[1]s}}}`, image))); err != nil {
		t.Fatal(err)
	}
	rolled(t, "Held")
}

// rolled waits until a rollout is in a phase.
func rolled(t *testing.T, phase string) {
	t.Helper()
	eventually(t, "the rollout to be "+phase, func(ctx context.Context) error {
		dgd, err := read(ctx, rollingGraph)
		if err != nil {
			return err
		}
		if r := dgd.Status.Rollout; r == nil || dgd.Status.ObservedGeneration != dgd.Generation || r.Phase != phase {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
}

// bed deploys a graph that goes to sleep.
func bed(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, strings.Replace(string(text), "name: quickstart", "name: "+dormantGraph+"\n  annotations: {"+v1alpha1.AnnotationScaleToZeroAfter+": 15s}", 1))
}

func deploy(t *testing.T, manifest string) {
	t.Helper()
	objects, err := cluster.Decode(strings.NewReader(manifest), namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
}

// slept waits until nobody has asked for long enough, and the workers are gone.
func slept(t *testing.T) {
	t.Helper()
	eventually(t, "a graph to sleep", func(ctx context.Context) error {
		dgd, err := read(ctx, dormantGraph)
		if err != nil {
			return err
		}
		pods, err := podsOf(ctx, dormantGraph)
		if err == nil && (!meta.IsStatusConditionTrue(dgd.Status.Conditions, v1alpha1.ConditionDormant) || len(pods) != 1) {
			err = fmt.Errorf("%d pods, %+v", len(pods), dgd.Status.Conditions)
		}
		return err
	})
}

// saysTheSleep: why a graph has no worker is what its condition says, on each of its pages.
func (b *walker) saysTheSleep(t *testing.T) {
	for _, path := range []string{graph(dormantGraph), graph(dormantGraph) + "/scaling"} {
		b.same(t, path, func(page string) any {
			text := words(page)
			_, after, _ := strings.Cut(text, "It is asleep ○ asleep Since ")
			_, why, _ := strings.Cut(after, "Why ")
			message, _, _ := strings.Cut(why, ". They end after 15s without one")
			return []any{message, strings.Contains(text, "kubectl dynamo scale wake "+dormantGraph+" --namespace "+namespace), strings.Contains(text, "are held for up to 10m")}
		}, func(ctx context.Context) (any, error) {
			dgd, err := read(ctx, dormantGraph)
			if err != nil {
				return nil, err
			}
			c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionDormant)
			if c == nil || c.Status != metav1.ConditionTrue {
				return nil, fmt.Errorf("it does not sleep: %+v", c)
			}
			return []any{c.Message, true, true}, nil
		})
	}
}

// limit deploys a graph whose planner decides and whose budget is less than its replicas.
func limit(t *testing.T) {
	t.Helper()
	deploy(t, planned)
	eventually(t, "a budget to hold", func(ctx context.Context) error {
		dgd, err := read(ctx, limitedGraph)
		if err == nil && !meta.IsStatusConditionTrue(dgd.Status.Conditions, v1alpha1.ConditionScalingLimited) {
			err = fmt.Errorf("%+v", dgd.Status.Conditions)
		}
		return err
	})
}

// planned is a graph with a planner that writes nothing, and a profile of its engines.
const planned = `
apiVersion: v1
kind: ConfigMap
metadata: {name: planner-profile-data}
data:
  prefill_raw_data.json: |
    {"prefill_isl": [1, 500, 1000, 2000, 4000], "prefill_ttft": [300, 300, 300, 300, 600],
     "prefill_thpt_per_gpu": [3, 1666, 3333, 6666, 6666]}
  decode_raw_data.json: |
    {"x_kv_usage": [0.01, 0.5, 1, 0.01, 0.5, 1], "y_context_length": [100, 100, 100, 4000, 4000, 4000],
     "z_itl": [5, 10, 20, 5, 10, 20], "z_thpt_per_gpu": [2000, 50000, 50000, 50, 1250, 1250], "max_kv_tokens": 100000}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: planned, annotations: {nvidia.com/gpu-budget: "2"}}
spec:
  backendFramework: vllm
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec: {mainContainer: {image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0"}}
    Planner:
      componentType: planner
      replicas: 1
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0
          workingDir: /workspace/components/src/dynamo/planner
          command: [python3, -m, planner_sla]
          args: [--environment=kubernetes, --backend=vllm, --adjustment-interval=60, --ttft=900, --itl=50, --max-gpu-budget=6, --no-operation, --profile-results-dir=/workspace/profiling_results]
          volumeMounts: [{name: planner-profile-data, mountPath: /workspace/profiling_results, readOnly: true}]
        volumes: [{name: planner-profile-data, configMap: {name: planner-profile-data}}]
    decode:
      componentType: worker
      subComponentType: decode
      replicas: 3
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B]}}
    prefill:
      componentType: worker
      subComponentType: prefill
      replicas: 1
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B, --is-prefill-worker]}}
`

// saysTheBudgets: who has GPUs of which budget, and what the operator says about it.
func (b *walker) saysTheBudgets(t *testing.T) {
	b.same(t, graph(limitedGraph)+"/scaling", func(page string) any {
		said := map[string]any{}
		for name, row := range table(page, "Budget of", "Used", "GPUs") {
			_, of, _ := strings.Cut(row[0], "% ")
			said[name] = []string{of, row[1]}
		}
		notes := strings.Split(words(page), "Limited: ")
		said["limited"], _, _ = strings.Cut(notes[len(notes)-1], " Service State Wanted")
		return said
	}, func(ctx context.Context) (any, error) {
		dgd, err := read(ctx, limitedGraph)
		if err != nil {
			return nil, err
		}
		var pods corev1.PodList
		if err := cluster.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		own, all := int64(0), int64(0)
		for _, p := range pods.Items {
			if all += gpus(p); p.Labels[v1alpha1.LabelGraphName] == limitedGraph {
				own += gpus(p)
			}
		}
		c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionScalingLimited)
		if c == nil {
			return nil, errors.New("nothing is limited")
		}
		return map[string]any{
			"graph " + limitedGraph: []string{fmt.Sprintf("%d of 2", own), "2"}, "namespace " + namespace: []string{fmt.Sprintf("%d of 32", all), "32"},
			"all graphs": []string{fmt.Sprintf("%d of 64", all), "64"}, "limited": c.Message,
		}, nil
	})
}

var article = regexp.MustCompile(`(?s)<article>(.*?)</article>`)

// saysTheDecisions: each that the planner tells is there with all of its words.
func (b *walker) saysTheDecisions(t *testing.T) {
	eventually(t, "the planner's decisions to be shown", func(ctx context.Context) error {
		pods, err := podsOf(ctx, limitedGraph)
		if err != nil {
			return err
		}
		raw, err := cluster.Kubectl(ctx, nil, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:9085/proxy/decisions", namespace, named(pods, "Planner")))
		if err != nil {
			return err
		}
		var told []journal.Record
		if err := json.Unmarshal([]byte(raw), &told); err != nil {
			return err
		}
		if len(told) == 0 {
			return errors.New("it has decided nothing yet")
		}
		var want []string
		for _, r := range slices.Backward(told) {
			want = append(want, strings.Join(strings.Fields(r.At.UTC().Format(time.RFC3339)+" "+strings.Join(r.Words, " ")), " "))
		}
		var shown string
		if err := chromedp.Run(b.browser, chromedp.Navigate(b.base+graph(limitedGraph)+"/scaling"), chromedp.WaitVisible(".decisions article"), chromedp.OuterHTML(".decisions", &shown)); err != nil {
			return err
		}
		var got []string
		for _, a := range article.FindAllStringSubmatch(shown, -1) {
			got = append(got, strings.TrimSuffix(words(a[1]), " not written: it only advises"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// wakes presses the button on the page of a graph that sleeps, and sees it arrive.
func (b *walker) wakes(t *testing.T) {
	slept(t)
	b.press(t, graph(dormantGraph), "Wake", "is told to wake")
	begin := time.Now()
	for _, shows := range []string{
		`document.querySelector("#h-sleep")?.innerText.includes("Its workers start")`,
		`document.querySelector(".title .state").innerText.includes("ready")`,
	} {
		if err := chromedp.Run(b.browser, chromedp.Poll(shows, nil, chromedp.WithPollingTimeout(patience))); err != nil {
			t.Fatalf("%s: %v", shows, err)
		}
	}
	summary.Line(t, "console: in the browser a graph that slept is ready %s after its button was pressed", time.Since(begin).Round(10*time.Millisecond))
}

// press clicks a button until the page says what came of it. A page that is laid out anew
// moves under a mouse, and a click into nothing leaves no trace; people click again, too.
func (b *walker) press(t *testing.T, path, name, want string) {
	t.Helper()
	button := `//button[text()="` + name + `"]`
	if err := chromedp.Run(b.browser, chromedp.Navigate(b.base+path), chromedp.WaitVisible(button, chromedp.BySearch)); err != nil {
		t.Fatal(err)
	}
	var err error = chromedp.ErrPollingTimeout
	for deadline := time.Now().Add(patience); errors.Is(err, chromedp.ErrPollingTimeout) && time.Now().Before(deadline); {
		err = chromedp.Run(b.browser, chromedp.Click(button, chromedp.BySearch),
			chromedp.Poll(`document.querySelector("#said p") !== null`, nil, chromedp.WithPollingTimeout(10*time.Second)))
	}
	var said string
	if err == nil {
		err = chromedp.Run(b.browser, chromedp.Text("#said", &said))
	}
	if err != nil || !strings.Contains(said, want) {
		t.Fatalf("%s: %q: %v", name, said, err)
	}
}

// busy asks graphs again and again, so that there is traffic to be seen.
func busy(t *testing.T, graphs ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, len(graphs))
	for _, name := range graphs {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				url := fmt.Sprintf("http://%s-frontend.%s.svc:8000", name, namespace)
				// Traffic for pictures: a question that fails is followed by the next.
				_ = cluster.Chat(ctx, url, "Qwen/Qwen3-0.6B", "Why do graphs never idle?", 40, func(string) {})
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		}()
	}
	return func() {
		cancel()
		for range graphs {
			<-done
		}
	}
}

// asks types a question and counts how often the answer grows.
func (b *walker) asks(t *testing.T) {
	const count = `window.grown = 0; new MutationObserver(all => { if (all.some(m => m.target.closest && m.target.closest(".a"))) window.grown++ }).observe(document.getElementById("answers"), {childList: true, subtree: true})`
	var said string
	var grown int
	err := chromedp.Run(b.browser, chromedp.Navigate(b.base+graph(healthy)), chromedp.WaitVisible("form.ask"), chromedp.Evaluate(count, nil),
		chromedp.SendKeys("[name=question]", "Why do graphs never idle?\r"), chromedp.WaitVisible(".answer .facts"), chromedp.Text(".answer", &said), chromedp.Evaluate("window.grown", &grown))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Time to first token", "Between tokens", "Answered by"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %q", want, said)
		}
	}
	if grown < 2 {
		t.Errorf("the answer grew %d times, which is no stream", grown)
	}
	summary.Line(t, "console: in the browser an answer grew %d times", grown)
}

// losesAPod kills one and waits until the page says so.
func (b *walker) losesAPod(t *testing.T) {
	pods, err := podsOf(t.Context(), healthy)
	if err != nil {
		t.Fatal(err)
	}
	name := named(pods, "decode")
	state := fmt.Sprintf(`document.querySelector("#pod-%s .state")`, name)
	if err := chromedp.Run(b.browser, chromedp.Navigate(b.base+graph(healthy)), chromedp.Poll(state+`?.innerText.includes("Ready")`, nil)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := cluster.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Run(b.browser, chromedp.Poll(`!`+state+`?.innerText.includes("Ready")`, nil, chromedp.WithPollingTimeout(patience))); err != nil {
		t.Fatal(err)
	}
	summary.Line(t, "console: in the browser a killed pod is shown after %s (2 s are wanted)", time.Since(begin).Round(10*time.Millisecond))
	settled(t)
}

// takesPictures looks at every page as people would.
func (b *walker) takesPictures(t *testing.T) {
	pods, err := podsOf(t.Context(), healthy)
	if err != nil {
		t.Fatal(err)
	}
	loaded := []chromedp.Action{chromedp.WaitVisible("main h1"), chromedp.Poll("window.htmx !== undefined", nil)}
	// Charts need some points; a list has them once its graphs were asked twice.
	drawn := append(slices.Clone(loaded), chromedp.Poll(`[...document.querySelectorAll(".spark svg")].length > 1`, nil))
	plotted := append(slices.Clone(loaded), chromedp.Poll(`JSON.parse(document.querySelector("[data-figures]").dataset.figures).every(f => (f.Times || []).length > 1)`, nil))
	asked := append(slices.Clone(plotted), chromedp.WaitVisible("form.ask"))
	looked := append(slices.Clone(loaded), chromedp.WaitVisible(".findings"))
	logged := append(slices.Clone(loaded), chromedp.WaitVisible("#log p"))
	history := append(slices.Clone(plotted), chromedp.WaitVisible("[data-label=Result]"))
	for _, p := range []struct {
		name, path string
		first      []chromedp.Action
	}{
		{"graphs", "/", drawn},
		{"graph", graph(healthy), asked},
		{"broken", graph(ailing), loaded},
		{"rolling", graph(rollingGraph), asked},
		{"rollout", graph(rollingGraph) + "/rollout", history},
		{"asleep", graph(dormantGraph), loaded},
		{"asleep-scaling", graph(dormantGraph) + "/scaling", plotted},
		{"scaling", graph(limitedGraph) + "/scaling", append(slices.Clone(plotted), chromedp.WaitVisible(".decisions article"), chromedp.Poll(`document.querySelector("#h-budgets + div").innerText.includes("all graphs")`, nil))},
		{"log", graph(healthy) + "/pods/" + named(pods, "Frontend"), logged},
		{"requests", "/requests", loaded},
		{"request", "/requests/" + namespace + "/fast-chat", loaded},
		{"models", "/models", loaded},
		{"cluster", "/cluster", looked},
	} {
		for _, look := range browser.Looks() {
			seen, err := browser.See(b.browser, look, b.base+p.path, p.first...)
			if err != nil {
				t.Fatalf("%s %s: %v", p.name, look, err)
			}
			if seen.Width > look.Width || len(seen.Faults) > 0 {
				t.Errorf("%s %s: %d wide; faults %q", p.name, look, seen.Width, seen.Faults)
			}
			if err := os.WriteFile(filepath.Join(*pictures, p.name+"-"+look.String()+".png"), seen.Picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// promotes lets the rollout pass its steps by a button, and sees it arrive.
func (b *walker) promotes(t *testing.T) {
	if err := chromedp.Run(b.browser, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	b.press(t, graph(rollingGraph)+"/rollout", "Promote all", "may pass all steps")
	if err := chromedp.Run(b.browser, chromedp.Poll(`document.querySelector(".title .state").innerText.includes("completed")`, nil, chromedp.WithPollingTimeout(patience))); err != nil {
		t.Fatal(err)
	}
	rolled(t, "Completed")
	b.saysTheRollout(t)
	seen, err := browser.See(b.browser, browser.Look{Scheme: "light", Width: 1280}, b.base+graph(rollingGraph)+"/rollout", chromedp.WaitVisible("[data-label=Result]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, "completed-light-1280.png"), seen.Picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
