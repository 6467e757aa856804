package console

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/browser"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// pictures is what make console asks for.
var pictures = flag.String("pictures", "", "folder for what a browser sees of a running cluster; without it none walks (make console)")

// rollingGraph is one whose workers are replaced a generation at a time.
const rollingGraph = "rolling"

// TestABrowserWalksARunningCluster reads every page in Chromium, and holds what stands
// there against the API, with a graph that is well, one that is rolled out and one that
// is broken. It asks, kills a pod, and promotes by a button.
func TestABrowserWalksARunningCluster(t *testing.T) {
	if *pictures == "" {
		t.Skip("make console walks the pages of a running cluster in a browser")
	}
	ctx := browser.Open(t, true)
	settled(t)
	request(t)
	roll(t)
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
	t.Run("requests are what the API says", b.saysTheRequest)
	t.Run("models are what the API says", b.saysTheModel)
	t.Run("a question is answered", b.asks)
	t.Run("a killed pod is shown", b.losesAPod)
	t.Run("pages look as they should", b.takesPictures)
	t.Run("a button promotes", b.promotes)
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
	objects, err := cluster.Decode(strings.NewReader(aRequest), namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
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
	objects, err := cluster.Decode(strings.NewReader(manifest), namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
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
		{"scaling", graph(healthy) + "/scaling", plotted},
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
	const button = `//button[text()="Promote all"]`
	var said string
	err := chromedp.Run(b.browser, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(b.base+graph(rollingGraph)+"/rollout"), chromedp.WaitVisible(button, chromedp.BySearch),
		chromedp.Click(button, chromedp.BySearch), chromedp.WaitVisible("#said p"), chromedp.Text("#said", &said))
	if err != nil || !strings.Contains(said, "may pass all steps") {
		t.Fatalf("%s: %v", said, err)
	}
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
