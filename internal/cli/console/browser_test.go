package console

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/browser"
)

var (
	pictures = flag.String("pictures", "", "folder to write screenshots to; without a browser the test then fails (make console)")
	axe      = flag.String("axe", "", "axe.min.js, to look for what keeps people out")
)

// TestABrowserWalksThePages loads each page in a real browser: light and dark, wide and
// narrow. No page is wider than the window, none breaks its own policy, and none has a
// fault that keeps people out.
func TestABrowserWalksThePages(t *testing.T) {
	ctx := browser.Open(t, *pictures != "")
	c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
	if err := chromedp.Run(ctx, chromedp.Navigate(c.URL()), chromedp.WaitVisible(".graphs")); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"graphs": "/", "graph": "/graphs/lab/chat", "broken": "/graphs/lab/summaries", "asleep": "/graphs/lab/nightly", "rollout": "/graphs/lab/assist/rollout", "scaling": "/graphs/lab/chat/scaling", "log": "/graphs/lab/chat/pods/chat-decode-7c9d5b6c9f-00000",
		"requests": "/requests", "request": "/requests/lab/fast-chat", "models": "/models", "cluster": "/cluster",
	} {
		for _, look := range browser.Looks() {
			t.Run(name+" "+look.String(), func(t *testing.T) {
				seen, err := browser.See(ctx, look, c.base+path, chromedp.WaitVisible("main h1"), chromedp.Poll("window.htmx !== undefined", nil))
				if err != nil {
					t.Fatal(err)
				}
				if seen.Width > look.Width || len(seen.Faults) > 0 {
					t.Errorf("the page is %d wide in a window of %d; faults %q", seen.Width, look.Width, seen.Faults)
				}
				if *axe != "" {
					accessible(ctx, t)
				}
				if *pictures != "" {
					if err := os.WriteFile(filepath.Join(*pictures, "sample-"+name+"-"+look.String()+".png"), seen.Picture, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// awaited waits for a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// accessible has axe look for serious faults.
func accessible(ctx context.Context, t *testing.T) {
	t.Helper()
	script, err := os.ReadFile(*axe)
	if err != nil {
		t.Fatal(err)
	}
	var found string
	run := `axe.run({iframes: false}).then(r => JSON.stringify(r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => v.id + ": " + v.nodes.map(n => n.target + " " + n.failureSummary).join("; "))))`
	err = chromedp.Run(ctx, chromedp.Evaluate(string(script), nil), chromedp.Evaluate(run, &found, awaited))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := json.Unmarshal([]byte(found), &all); err != nil || len(all) > 0 {
		t.Errorf("axe: %v %s", err, strings.Join(all, "\n"))
	}
}

// TestABrowserSeesChangesAndAnswers: a pod that is killed goes from the page, and an
// answer comes piece by piece.
func TestABrowserSeesChangesAndAnswers(t *testing.T) {
	ctx := browser.Open(t, *pictures != "")
	c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
	var answer string
	if err := chromedp.Run(ctx, chromedp.Navigate(c.URL()), chromedp.WaitVisible(".graphs"), chromedp.Navigate(c.base+"/graphs/lab/chat"),
		chromedp.WaitVisible("#pod-chat-decode-7c9d5b6c9f-00003"), chromedp.WaitVisible("form.ask"),
		chromedp.SendKeys("[name=question]", "Why do graphs never idle?\r"), chromedp.WaitVisible(".answer .facts"), chromedp.Text(".answer", &answer)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Because graphs <b>never</b> idle.", "Time to first token", "chat-decode-7c9d5b6c9f-00002"} {
		if !strings.Contains(answer, want) {
			t.Errorf("%q is not in %q", want, answer)
		}
	}
	for _, o := range sample() {
		if o.GetName() == "chat-decode-7c9d5b6c9f-00003" {
			if err := c.objects.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.source.changes.notify()
	begin := time.Now()
	if err := chromedp.Run(ctx, chromedp.WaitNotPresent("#pod-chat-decode-7c9d5b6c9f-00003")); err != nil {
		t.Fatal(err)
	}
	t.Logf("a pod that was killed went from the page after %s", time.Since(begin).Round(time.Millisecond))
}
