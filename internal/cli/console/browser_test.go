package console

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	pictures = flag.String("pictures", "", "folder to write screenshots to; without a browser the test then fails (make console)")
	axe      = flag.String("axe", "", "axe.min.js, to look for what keeps people out")
)

// chromium is a browser, or the end of the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if *pictures != "" {
			t.Fatal("there is no chromium: apt-get install chromium")
		}
		t.Skip("there is no chromium to look at the pages with: apt-get install chromium, or make console")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// TestABrowserWalksThePages loads each page in a real browser: light and dark, wide and
// narrow. No page is wider than the window, none breaks its own policy, and none has a
// fault that keeps people out.
func TestABrowserWalksThePages(t *testing.T) {
	ctx := chromium(t)
	c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
	if err := chromedp.Run(ctx, chromedp.Navigate(c.URL()), chromedp.WaitVisible(".graphs")); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"graphs": "/", "graph": "/graphs/lab/chat", "broken": "/graphs/lab/summaries", "log": "/graphs/lab/chat/pods/chat-decode-7c9d5b6c9f-00000",
		"requests": "/requests", "request": "/requests/lab/fast-chat", "models": "/models", "cluster": "/cluster",
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				t.Run(fmt.Sprintf("%s %s %d", name, scheme, width), func(t *testing.T) {
					var wide int
					var faults []string
					var shot []byte
					err := chromedp.Run(ctx,
						emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
						chromedp.EmulateViewport(width, 900),
						chromedp.ActionFunc(func(ctx context.Context) error {
							_, err := cdpage.AddScriptToEvaluateOnNewDocument(`window.broken = []; document.addEventListener("securitypolicyviolation", e => broken.push(e.violatedDirective + " " + e.blockedURI)); window.addEventListener("error", e => broken.push(e.message))`).Do(ctx)
							return err
						}),
						chromedp.Navigate(c.base+path), chromedp.WaitVisible("main h1"),
						chromedp.Poll("window.htmx !== undefined", nil),
						chromedp.Evaluate("document.documentElement.scrollWidth", &wide),
						chromedp.Evaluate("window.broken", &faults),
						chromedp.FullScreenshot(&shot, 100),
					)
					if err != nil {
						t.Fatal(err)
					}
					if int64(wide) > width || len(faults) > 0 {
						t.Errorf("the page is %d wide in a window of %d; faults %q", wide, width, faults)
					}
					if *axe != "" {
						accessible(ctx, t)
					}
					if *pictures != "" {
						if err := os.WriteFile(filepath.Join(*pictures, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), shot, 0o644); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
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
	ctx := chromium(t)
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
