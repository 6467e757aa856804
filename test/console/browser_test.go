package console

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// walk loads each page of a console in a browser: none breaks its own policy, and none
// has an error in its scripts.
func walk(t *testing.T, s *session) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium to look at the pages with: apt-get install chromium")
	}
	pods, err := podsOf(t.Context(), healthy)
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	err = chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdpage.AddScriptToEvaluateOnNewDocument(`window.broken = []; document.addEventListener("securitypolicyviolation", e => broken.push(e.violatedDirective + " " + e.blockedURI)); window.addEventListener("error", e => broken.push(e.message))`).Do(ctx)
		return err
	}), network.SetCookie(s.cookie.Name, s.cookie.Value).WithURL(s.base))
	if err != nil {
		t.Fatal(err)
	}
	for path, shown := range map[string]string{
		"/": "#row-" + namespace + "-" + healthy, graph(healthy): "form.ask", graph(ailing): "#h-why",
		graph(healthy) + "/pods/" + pods[0].Name: "#log p", "/requests": "h1", "/models": "h1", "/cluster": ".findings",
	} {
		var faults []string
		if err := chromedp.Run(ctx, chromedp.Navigate(s.base+path), chromedp.WaitVisible(shown), chromedp.Evaluate("window.broken", &faults)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(faults) > 0 {
			t.Errorf("%s: %q", path, faults)
		}
	}
}
