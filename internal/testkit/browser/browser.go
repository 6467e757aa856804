// Package browser lets tests look at pages in Chromium, as people would: in both colour
// schemes, on a desk and on a telephone. Without Chromium a test is skipped, and says so.
package browser

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Open starts a browser that ends with the test. If it is required, a machine without
// one fails the test.
func Open(t testing.TB, required bool) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if required {
			t.Fatal("there is no chromium: apt-get install chromium")
		}
		t.Skip("there is no chromium to look at the pages with: apt-get install chromium, or make console")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// Look is how a page is looked at.
type Look struct {
	Scheme string
	Width  int64
}

func (l Look) String() string { return fmt.Sprintf("%s-%d", l.Scheme, l.Width) }

// Looks are light and dark, wide and narrow.
func Looks() []Look {
	return []Look{{"light", 1280}, {"light", 390}, {"dark", 1280}, {"dark", 390}}
}

// Seen is what a page looked like.
type Seen struct {
	Picture []byte
	// Width is that of the page, which should be no more than the window's.
	Width int64
	// Faults are what the page's policy refused, and errors of its scripts.
	Faults []string
}

const remember = `window.broken = []; document.addEventListener("securitypolicyviolation", e => broken.push(e.violatedDirective + " " + e.blockedURI)); window.addEventListener("error", e => broken.push(e.message))`

// See opens a page, does what has to be done on it first, and looks.
func See(ctx context.Context, look Look, url string, first ...chromedp.Action) (Seen, error) {
	var seen Seen
	actions := []chromedp.Action{
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.Scheme}}),
		chromedp.EmulateViewport(look.Width, 900),
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(remember).Do(ctx)
			return err
		}),
		chromedp.Navigate(url),
	}
	actions = append(actions, first...)
	actions = append(actions,
		chromedp.Evaluate("document.documentElement.scrollWidth", &seen.Width),
		chromedp.Evaluate("window.broken", &seen.Faults),
		chromedp.FullScreenshot(&seen.Picture, 100),
	)
	if err := chromedp.Run(ctx, actions...); err != nil {
		return seen, fmt.Errorf("look at %s: %w", url, err)
	}
	return seen, nil
}
