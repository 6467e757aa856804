package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// words are a page's text without its markup, in one line.
func words(page string) string {
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(text), " ")
}

func TestPagesSayWhatIsThere(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
	cookie := c.enter()
	for path, want := range map[string][]string{
		"/": {
			"chat", "ready", "summaries", "decode: container main exited with code 1: CUDA out of memory", "vision", "pending",
			"1 ✕ need attention", "1 ◐ on their way", "2 ✓ ready", "1 ○ asleep", "nightly ○ asleep no request since 2026-11-16T20:00:00Z; workers start with the next one ✓ Frontend 1/1 ○ decode 0/2 0", "13 GPUs held", "namespace lab", "read only",
		},
		"/graphs/lab/chat": {
			"Frontend and router", "Prefill", "Decode", "4 of 4 ready", "Beside the way of requests", "Planner", "Qwen/Qwen3-0.6B",
			"routes to the worker with the most of the prompt in its KV cache", "chat-decode-7c9d5b6c9f-00003", "node-1", "AllServicesReady 4 of 4 services ready",
		},
		"/graphs/lab/assist": {"Rollout of revision 8, generation 3fa91c02 replaces 91c0aa17: held, step 2 of 2 waits for a promotion", "Graph Rollout Scaling"},
		"/graphs/lab/nightly": {
			"It is asleep", "Since 3h ago", "Why no request since 2026-11-16T20:00:00Z; workers start with the next one. They end after 15m without one",
			"It wakes with the next request, as with a question on the graph&#39;s page, or by kubectl dynamo scale wake nightly --namespace lab",
			"Requests are held for up to 10m while workers start", "0 of 2 ready worker · Deployment nightly-decode no pod: it is asleep", "Dormant ○ true Idle",
		},
		"/graphs/lab/nightly/scaling": {"It is asleep", "decode worker ○ asleep 2 0 0 0", "graph nightly 0 no limit – nobody"},
		"/graphs/lab/assist/rollout": {
			"held", "revision 8, generation 3fa91c02 replaces 91c0aa17", "1 for 5m0s done", "50% until it is promoted now", "all to come", "Held (StepHold): step 2 of 2 waits for a promotion",
			"decode ✓ at or above its floor 3 2 2 2", "3fa91c02 revision 8 · to arrive at · share of the traffic: 33%", "91c0aa17 revision 7 · stable · share of the traffic: 67%",
			"pass by 812 requests", "Time to first token, 95th percentile 850ms 840ms 2s", "Requests that failed 0.4% 0.5% none",
		},
		"/graphs/lab/chat/rollout": {"Nothing was rolled out yet"},
		"/graphs/lab/chat/scaling": {
			"Limited: decode has 4 of 6 replicas: the budget of graph chat is 6 GPUs", "decode decode ◐ 2 replicas not granted 6 4 4 4 1m20s, p95 1m35s scaling adapter chat-decode 12m ago",
			"prefill prefill ✓ as wanted 2 2 2 2 not told the graph&#39;s spec not told", "GPUs held 6", "graph chat 100 % 6 of 6 6 0 decode 4 prefill 2", "Asking the planner",
		},
		"/graphs/lab/assist/scaling":         {"decode worker ◐ 1 replica to go 2 3 3 3", "No service of this graph is a planner", "graph assist 3 no limit – decode 3"},
		"/graphs/lab/chat/decisions":         {"As chat-planner-7c9d5b6c9f-00000 tells them, the newest first.", "2026-11-16T20:00:00Z prefill 2, decode 4 → 6 (6 → 8 GPUs, budget 16): Grow arrivals 11.2/s"},
		"/graphs/lab/assist/decisions":       {"no pod of a planner is ready"},
		"/graphs/lab/assist/rollout/history": {"No revision is remembered."},
		"/graphs/lab/summaries": {
			"Why it is not ready", "ContainerCrashed: container main exited with code 1: CUDA out of memory", "service decode 0/2 ready", "pod summaries-decode-7c9d5b6c9f-00000 on node-0",
			"What to do: read the container&#39;s log: kubectl logs -n lab summaries-decode-7c9d5b6c9f-00000 -c main --previous", "Back-off restarting failed container main 14 times", "CrashLoopBackOff",
		},
		"/graphs/lab/summaries/pods/summaries-decode-7c9d5b6c9f-00000": {"Log of main", "CrashLoopBackOff", "node-0"},
		"/requests":               {"fast-chat", "profiling", "meta-llama/Llama-3.1-8B"},
		"/requests/lab/fast-chat": {"42 of 120", "disaggregated, 1 prefill and 2 decode of 1 GPU", "itl 9.5ms of 8ms, missed by 18.8%", "ttft 180ms of 300ms, met", "Report", "Validation"},
		"/models":                 {"legal", "legal-v2", "1/2", "loading", "loaded", "chat-decode-7c9d5b6c9f-00000"},
		"/cluster":                {"2 nodes", "16 GPUs", "13 held", "3 free", "NVIDIA-H100-80GB-HBM3", "lab/chat 3", "Only pods of namespace lab are counted"},
	} {
		t.Run(path, func(t *testing.T) {
			r := get(c, path)
			r.AddCookie(cookie)
			status, page := do(t, r)
			if status != http.StatusOK {
				t.Fatalf("%d: %s", status, page)
			}
			text := words(page)
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in: %s", w, text)
				}
			}
			if strings.Contains(page, " style=") || strings.Contains(page, " onclick=") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(page) {
				t.Error("the page has a style or a script that its policy forbids")
			}
		})
	}
}

// TestBudgetsOfTheConfigurationAreShown once they are read, to who may.
func TestBudgetsOfTheConfigurationAreShown(t *testing.T) {
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dynamo-system", Name: "dynamo-operator-config"}, Data: map[string]string{"config.yaml": "namespaces: [elsewhere]\nscaling: {gpus: 3}"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("no right"))
	for rule, c := range map[string]struct {
		namespace string
		configure func(console)
		want      []string
	}{
		"of a namespace and of all": {"", func(console) {}, []string{"namespace lab 100 % 13 of 13 13 0 lab/chat 6 lab/assist 3 lab/summaries 2 lab/vision 2", "all graphs 81 % 13 of 16 16 3 lab/chat 6"}},
		"who sees one namespace":    {"lab", func(console) {}, []string{"namespace lab 100 % 13 of 13 13 0", "all graphs not all pods are seen 16 –"}},
		"an operator of others": {"", func(c console) {
			if err := c.objects.Update(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}, []string{"are not shown: no operator that looks after namespace lab was found"}},
		"who may not read it": {"", func(c console) {
			c.options.Cluster.WithWatch = interceptor.NewClient(c.objects, interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if _, is := list.(*appsv1.DeploymentList); is {
					return forbidden
				}
				return w.List(ctx, list, o...)
			}})
		}, []string{"are not shown: you may not list deployments of all namespaces and get the ConfigMap of the operator"}},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newConsole(t, Options{Namespace: c.namespace}, engines(), sample()...)
			c.configure(s)
			s.configure()
			r := get(s, "/graphs/lab/chat/scaling")
			r.AddCookie(s.enter())
			_, page := do(t, r)
			for _, want := range c.want {
				if !strings.Contains(words(page), want) {
					t.Errorf("%q is not in: %s", want, words(page))
				}
			}
		})
	}
}

// TestTheLastDecisionOutlivesItsPlanner in the graph's annotation.
func TestTheLastDecisionOutlivesItsPlanner(t *testing.T) {
	objects := sample()
	objects[0].SetAnnotations(map[string]string{v1alpha1.AnnotationScalePlan: `{"at":"2026-11-16T20:00:00Z","reason":"Grow","from":{"decode":4},"to":{"decode":6},"failed":"no right","words":["decode 4 → 6"]}`})
	c := newConsole(t, Options{Namespace: "lab"}, nil, objects...)
	r := get(c, "/graphs/lab/chat/decisions")
	r.AddCookie(c.enter())
	_, page := do(t, r)
	for _, want := range []string{"chat-planner-7c9d5b6c9f-00000 tells no decisions", "As the graph&#39;s annotation nvidia.com/scale-plan tells them", "2026-11-16T20:00:00Z decode 4 → 6 not written: no right"} {
		if !strings.Contains(words(page), want) {
			t.Errorf("%q is not in: %s", want, words(page))
		}
	}
}

func TestWhatIsNotThereIsSaidInWords(t *testing.T) {
	empty := newConsole(t, Options{Namespace: "lab"}, nil)
	cookie := empty.enter()
	for path, want := range map[string]string{
		"/": "No graph here yet", "/requests": "No request here yet", "/models": "No model here yet", "/cluster": "The cluster has no node",
		"/graphs/lab/x": "There is no graph lab/x", "/graphs/lab/x/rollout": "There is no graph lab/x", "/graphs/lab/x/scaling": "There is no graph lab/x", "/requests/lab/x": "There is no request lab/x", "/graphs/lab/x/pods/y": "There is no pod y", "/nothing": "No such page",
	} {
		r := get(empty, path)
		r.AddCookie(cookie)
		status, page := do(t, r)
		if absent := strings.Contains(path, "x") || path == "/nothing"; !strings.Contains(words(page), want) || (status == http.StatusNotFound) != absent {
			t.Errorf("%s: %d %s", path, status, words(page))
		}
	}
}

func TestWhatTheCallerMayNotReadIsSaidInWords(t *testing.T) {
	for namespace, want := range map[string]string{
		"lab": "You may not list dynamographdeployments in namespace lab.",
		"":    "You may not list dynamographdeployments of all namespaces. Name one that you may read: kubectl dynamo ui --namespace NAME.",
	} {
		c := newConsole(t, Options{Namespace: namespace}, nil, sample()...)
		c.source.stand(graphKind, standing{problem: forbidden(graphKind, namespace)})
		c.source.stand(nodeKind, standing{problem: forbidden(nodeKind, namespace)})
		cookie := c.enter()
		for path, want := range map[string]string{"/": want, "/graphs/lab/chat": want, "/cluster": "You may not list nodes, so nodes and free GPUs are not shown."} {
			r := get(c, path)
			r.AddCookie(cookie)
			if status, page := do(t, r); status != http.StatusOK || !strings.Contains(words(page), want) {
				t.Errorf("%s: %d %s", path, status, words(page))
			}
		}
	}
}

// events reads a stream until one of a name comes, and returns what it carries.
func events(t *testing.T, c console, path string, cookie *http.Cookie, until func(name, data string) bool) {
	t.Helper()
	r := get(c, path)
	r.AddCookie(cookie)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("%s is %q, %s", path, got, response.Status)
	}
	deadline := time.AfterFunc(20*time.Second, func() { response.Body.Close() })
	defer deadline.Stop()
	name, data := "", []string(nil)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = append(data, line[len("data: "):])
		case line == "":
			if until(name, strings.Join(data, "\n")) {
				return
			}
			name, data = "", nil
		}
	}
	t.Fatalf("the stream %s ended too soon", path)
}

func TestAKilledPodIsShownAtOnce(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
	cookie, killed := c.enter(), false
	const name = "chat-decode-7c9d5b6c9f-00003"
	events(t, c, "/live/graphs/lab/chat", cookie, func(block, data string) bool {
		if block != "graph-services" {
			return false
		}
		if !killed {
			killed = true
			if !strings.Contains(data, name) {
				t.Fatalf("%s is not there: %s", name, data)
			}
			if err := c.objects.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}); err != nil {
				t.Fatal(err)
			}
			c.source.changes.notify()
			return false
		}
		return !strings.Contains(data, name)
	})
}

func TestTheAPIServerGoesAndComesBack(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
	step := 0
	events(t, c, "/live/", c.enter(), func(block, data string) bool {
		if block != "banner" {
			return false
		}
		step++
		switch step {
		case 1:
			c.source.reach.failed(http.ErrServerClosed)
		case 2:
			if !strings.Contains(data, "The API server has not answered since") {
				t.Errorf("%s", data)
			}
			c.source.reach.answered()
		case 3:
			if strings.Contains(data, "API server") {
				t.Errorf("%s", data)
			}
			return true
		}
		return false
	})
}

func TestAGraphIsAsked(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
	cookie := c.enter()
	r := get(c, "/graphs/lab/chat/models")
	r.AddCookie(cookie)
	if status, page := do(t, r); status != http.StatusOK || !strings.Contains(page, `<option value="Qwen/Qwen3-0.6B">`) {
		t.Fatalf("%d %s", status, page)
	}
	r = post(c, "/graphs/lab/chat/questions", url.Values{"model": {"Qwen/Qwen3-0.6B"}, "question": {"Why?"}})
	r.Header.Set("Origin", c.base)
	r.AddCookie(cookie)
	status, fragment := do(t, r)
	place := regexp.MustCompile(`/answers/[0-9a-f]+`).FindString(fragment)
	if status != http.StatusOK || place == "" {
		t.Fatalf("%d %s", status, fragment)
	}
	said, pieces, came := "", 0, ""
	events(t, c, place, cookie, func(name, data string) bool {
		switch name {
		case "piece":
			pieces++
			said += strings.TrimSuffix(strings.TrimPrefix(data, "<span>"), "</span>")
		case "came":
			came = words(data)
		}
		return name == "done"
	})
	if pieces != 4 || said != "Because graphs &lt;b&gt;never&lt;/b&gt; idle." {
		t.Errorf("%d pieces: %s", pieces, said)
	}
	for _, want := range []string{"Time to first token", "Between tokens", "Tokens 4", "Answered by chat-decode-7c9d5b6c9f-00002", "prompt computed by worker 4d"} {
		if !strings.Contains(came, want) {
			t.Errorf("%q is not in %q", want, came)
		}
	}
	r = get(c, place)
	r.AddCookie(cookie)
	if status, _ := do(t, r); status != http.StatusNoContent {
		t.Errorf("a question is asked again: %d", status)
	}
}

// TestAGraphIsAskedAtItsService: names of graphs may have dots, those of Services not.
func TestAGraphIsAskedAtItsService(t *testing.T) {
	dotted := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "qwen3.5"},
		Spec:       v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{"Frontend": service(v1alpha1.ComponentTypeFrontend, "", 1)}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/lab/services/qwen3-5-frontend:8000/proxy/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"id":"found"}]}`)
	})
	c := newConsole(t, Options{Namespace: "lab"}, mux, dotted)
	r := get(c, "/graphs/lab/qwen3.5/models")
	r.AddCookie(c.enter())
	if status, page := do(t, r); status != http.StatusOK || !strings.Contains(page, `<option value="found">`) {
		t.Errorf("%d %s", status, page)
	}
}

func TestAskingWithoutRightsIsSaidInWords(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"kind":"Status","reason":"Forbidden","code":403}`, http.StatusForbidden)
	}), sample()...)
	r := get(c, "/graphs/lab/chat/models")
	r.AddCookie(c.enter())
	if _, page := do(t, r); !strings.Contains(page, "You may not create services/proxy in namespace lab") {
		t.Error(page)
	}
}

// TestTextOfOthersIsShownAsText puts the same hostile words wherever tenants can put
// words: a model's name, a condition's message, an event, a label of a node, a log.
func TestTextOfOthersIsShownAsText(t *testing.T) {
	objects := sample()
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.DynamoGraphDeployment:
			for i := range o.Status.Conditions {
				o.Status.Conditions[i].Message = hostile
			}
			for name, s := range o.Status.Services {
				s.Message = hostile
				o.Status.Services[name] = s
				o.Spec.Services[name].ModelRef = &v1alpha1.ModelReference{Name: hostile}
			}
			if r := o.Status.Rollout; r != nil {
				r.Message, r.Reason, r.Analysis.Verdict, r.Analysis.Errors = hostile, hostile, hostile, []string{hostile, hostile}
			}
		case *v1alpha1.DynamoGraphDeploymentScalingAdapter:
			o.Status.Conditions[0].Status, o.Status.Conditions[0].Message = metav1.ConditionFalse, hostile
		case *v1alpha1.DynamoModel:
			o.Spec.ModelName, o.Spec.BaseModelName = hostile, hostile
			o.Status.Endpoints = append(o.Status.Endpoints, v1alpha1.ModelEndpoint{PodName: "p", Error: hostile})
		case *v1alpha1.DynamoGraphDeploymentRequest:
			o.Spec.Model = hostile
		case *corev1.Event:
			o.Message = hostile
		case *corev1.Node:
			o.Labels["nvidia.com/gpu.product"] = hostile
		case *corev1.Pod:
			if s := o.Status.ContainerStatuses; len(s) > 0 {
				s[0].LastTerminationState.Terminated.Message = hostile
			}
		}
	}
	c := newConsole(t, Options{Namespace: "lab"}, engines(), objects...)
	cookie := c.enter()
	harmless := func(t *testing.T, page string) {
		t.Helper()
		if strings.Contains(page, "<script>document") || strings.Contains(page, "<img src=x") || strings.ContainsAny(page, "\x1b\x07\u202e") {
			t.Errorf("the text of others is more than text: %s", page)
		}
		if !strings.Contains(page, "&lt;script&gt;document.title=") && !strings.Contains(page, "\\u003cscript") {
			t.Errorf("the text of others is not shown: %s", page)
		}
	}
	for _, path := range []string{"/", "/graphs/lab/chat", "/graphs/lab/summaries", "/graphs/lab/assist", "/graphs/lab/nightly", "/graphs/lab/assist/rollout", "/graphs/lab/chat/scaling", "/graphs/lab/nightly/scaling", "/graphs/lab/chat/decisions", "/models", "/requests", "/requests/lab/fast-chat", "/cluster"} {
		t.Run(path, func(t *testing.T) {
			r := get(c, path)
			r.AddCookie(cookie)
			_, page := do(t, r)
			harmless(t, page)
		})
	}
	t.Run("a line of a log", func(t *testing.T) {
		var all strings.Builder
		events(t, c, "/logs/lab/summaries-decode-7c9d5b6c9f-00000/main", cookie, func(name, data string) bool {
			all.WriteString(data)
			return name == "end"
		})
		harmless(t, all.String())
		if !strings.Contains(all.String(), "loading weights") || !strings.Contains(all.String(), "The log ends here.") {
			t.Error(all.String())
		}
	})
	t.Run("a model's name in the box to ask", func(t *testing.T) {
		page, err := text("ask", map[string]any{"Path": "/graphs/lab/chat", "Models": []string{hostile}, "Problem": hostile})
		if err != nil {
			t.Fatal(err)
		}
		// The value is not shown, and has to be what the frontend called the model.
		shown := regexp.MustCompile(`value="[^"]*"`).ReplaceAllString(page, "")
		harmless(t, shown)
		if strings.Contains(page, `value=""`) {
			t.Error(page)
		}
	})
}

func TestASessionMissesNoLineOfALog(t *testing.T) {
	asked := make(chan string, 1)
	c := newConsole(t, Options{Namespace: "lab"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RawQuery
		w.Write([]byte("2026-11-16T20:00:00.1Z seen\n2026-11-16T20:00:00.2Z new\n"))
	}), sample()...)
	r := get(c, "/logs/lab/p/main")
	r.AddCookie(c.enter())
	r.Header.Set("Last-Event-ID", "2026-11-16T20:00:00.1Z")
	_, page := do(t, r)
	if query := <-asked; !strings.Contains(query, "sinceTime=2026-11-16T20") {
		t.Errorf("asked for %s", query)
	}
	if strings.Contains(page, "seen") || !strings.Contains(page, "new") || !strings.Contains(page, "id: 2026-11-16T20:00:00.2Z") {
		t.Error(page)
	}
}
