package console

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// attack is a request that somebody else makes. Each is refused; without its guard,
// which unguarded_test.go switches off, each works.
type attack struct {
	rule string
	// without is the guard that it meets.
	without guard.Guard
	// request makes it; cookie is the user's, which a browser would add.
	request func(c console, cookie *http.Cookie) *http.Request
	refused int
	works   int
	// changes says that it changes a graph where it works.
	changes bool
}

func get(c console, path string) *http.Request {
	r, err := http.NewRequest(http.MethodGet, c.base+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func post(c console, path string, form url.Values) *http.Request {
	r, err := http.NewRequest(http.MethodPost, c.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

var question1 = url.Values{"model": {"m"}, "question": {"who are you?"}}

var attacks = []attack{
	{
		"a foreign name that leads to loopback reads graphs (DNS rebinding)", GuardHost,
		func(c console, cookie *http.Cookie) *http.Request {
			r := get(c, "/graphs/lab/chat")
			r.Host = "evil.example:" + c.base[strings.LastIndex(c.base, ":")+1:]
			r.AddCookie(cookie)
			return r
		}, http.StatusMisdirectedRequest, http.StatusOK, false,
	},
	{
		"a page of another site reads through a script", GuardOrigin,
		func(c console, cookie *http.Cookie) *http.Request {
			r := get(c, "/graphs/lab/chat")
			r.Header.Set("Origin", "https://evil.example")
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, false,
	},
	{
		"a page of another port of this machine embeds one of ours", GuardOrigin,
		func(c console, cookie *http.Cookie) *http.Request {
			r := get(c, "/graphs/lab/chat")
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, false,
	},
	{
		"a form of another site asks a graph (CSRF)", GuardOrigin,
		func(c console, cookie *http.Cookie) *http.Request {
			r := post(c, "/graphs/lab/chat/questions", question1)
			r.Header.Set("Origin", "http://127.0.0.1:1")
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, false,
	},
	{
		"a request that says nothing of where it comes from asks a graph", GuardOrigin,
		func(c console, cookie *http.Cookie) *http.Request {
			r := post(c, "/graphs/lab/chat/questions", question1)
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, false,
	},
	{
		"a process without a token reads graphs", GuardSession,
		func(c console, _ *http.Cookie) *http.Request { return get(c, "/graphs/lab/chat") }, http.StatusUnauthorized, http.StatusOK, false,
	},
	{
		"a process guesses a cookie", GuardSession,
		func(c console, cookie *http.Cookie) *http.Request {
			r := get(c, "/models")
			r.AddCookie(&http.Cookie{Name: cookie.Name, Value: strings.Repeat("0", len(cookie.Value))})
			return r
		}, http.StatusUnauthorized, http.StatusOK, false,
	},
	{
		"somebody changes a graph though changes are not allowed", GuardChanges,
		func(c console, cookie *http.Cookie) *http.Request {
			r := post(c, "/graphs/lab/chat/changes/restart", nil)
			r.Header.Set("Origin", c.base)
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, true,
	},
	{
		"somebody aborts a rollout though changes are not allowed", GuardChanges,
		func(c console, cookie *http.Cookie) *http.Request {
			r := post(c, "/graphs/lab/assist/rollout/orders/abort?revision=8&step=2%2F2", nil)
			r.Header.Set("Origin", c.base)
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, true,
	},
	{
		"somebody wakes a graph though changes are not allowed", GuardChanges,
		func(c console, cookie *http.Cookie) *http.Request {
			r := post(c, "/graphs/lab/nightly/changes/wake", nil)
			r.Header.Set("Origin", c.base)
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, true,
	},
	{
		"a form of another site wakes a graph, which takes GPUs", GuardOrigin,
		func(c console, cookie *http.Cookie) *http.Request {
			r := post(c, "/graphs/lab/nightly/changes/wake", nil)
			r.Header.Set("Origin", "https://evil.example")
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, true,
	},
	{
		"a form of another site aborts a rollout where changes are allowed", GuardOrigin,
		func(c console, cookie *http.Cookie) *http.Request {
			r := post(c, "/graphs/lab/assist/rollout/orders/abort?revision=8&step=2%2F2", nil)
			r.Header.Set("Origin", "https://evil.example")
			r.AddCookie(cookie)
			return r
		}, http.StatusForbidden, http.StatusOK, true,
	},
}

// changed is what of three graphs only changes can have brought about.
func changed(t *testing.T, c console) string {
	t.Helper()
	var rolling v1alpha1.DynamoGraphDeployment
	if err := c.objects.Get(t.Context(), types.NamespacedName{Namespace: "lab", Name: "assist"}, &rolling); err != nil {
		t.Fatal(err)
	}
	return restartID(t, c) + rolling.Annotations[v1alpha1.AnnotationRolloutAbort] + woken(t, c)
}

// woken is when the graph that sleeps was last asked for.
func woken(t *testing.T, c console) string {
	t.Helper()
	var lease coordinationv1.Lease
	if err := c.objects.Get(t.Context(), types.NamespacedName{Namespace: "lab", Name: "nightly-activation"}, &lease); err != nil {
		t.Fatal(err)
	}
	if lease.Spec.RenewTime == nil {
		return ""
	}
	return lease.Spec.RenewTime.String()
}

// open is how the console of an attack is started: changes are allowed unless the
// attack is about that.
func (a attack) open(t *testing.T) console {
	t.Helper()
	return newConsole(t, Options{Namespace: "lab", AllowChanges: a.without != GuardChanges}, engines(), sample()...)
}

func do(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestAttacksAreRefused(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.rule, func(t *testing.T) {
			c := a.open(t)
			status, body := do(t, a.request(c, c.enter()))
			if status != a.refused {
				t.Errorf("answered with %d, want %d", status, a.refused)
			}
			for _, secret := range []string{"decode", "Qwen"} {
				if strings.Contains(body, secret) {
					t.Errorf("the refusal tells of the cluster: %s", body)
				}
			}
			if what := changed(t, c); what != "" {
				t.Errorf("a graph was changed: %s", what)
			}
		})
	}
}

func restartID(t *testing.T, c console) string {
	t.Helper()
	var dgd v1alpha1.DynamoGraphDeployment
	if err := c.objects.Get(t.Context(), types.NamespacedName{Namespace: "lab", Name: "chat"}, &dgd); err != nil {
		t.Fatal(err)
	}
	if dgd.Spec.Restart == nil {
		return ""
	}
	return dgd.Spec.Restart.ID
}

func TestATokenWorksOnce(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
	address := c.URL()
	cookie := c.enter()
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" {
		t.Errorf("the cookie can be read or sent by others: %v", cookie)
	}
	for rule, token := range map[string]string{"the same again": address, "another": c.base + "/?token=" + strings.Repeat("0", 64), "none": c.base + "/?token="} {
		response, err := http.Get(token)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized || len(response.Cookies()) != 0 {
			t.Errorf("%s: %s, cookies %v", rule, response.Status, response.Cookies())
		}
	}
	// Of a console that was started anew, neither the old URL nor the old cookie works.
	again := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
	r := get(again, "/")
	r.AddCookie(cookie)
	if status, _ := do(t, r); status != http.StatusUnauthorized {
		t.Errorf("an old cookie: %d", status)
	}
}

func TestTheConsoleListensOnLoopbackAlone(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, nil)
	address, err := netip.ParseAddrPort(c.listener.Addr().String())
	if err != nil || !address.Addr().IsLoopback() {
		t.Errorf("listens at %s: %v", c.listener.Addr(), err)
	}
}

func TestWhoMayChangeChanges(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab", AllowChanges: true}, nil, sample()...)
	r := post(c, "/graphs/lab/chat/changes/restart", nil)
	r.Header.Set("Origin", c.base)
	r.AddCookie(c.enter())
	status, body := do(t, r)
	if id := restartID(t, c); status != http.StatusOK || id == "" || !strings.Contains(body, id) {
		t.Errorf("%d %s, restart %q", status, body, id)
	}
}

func TestWhoMayChangeWakesAGraph(t *testing.T) {
	for rule, c := range map[string]struct {
		graph, says string
		wakes       bool
	}{
		"one that sleeps":         {"nightly", "graph nightly is told to wake", true},
		"not one that never does": {"chat", "graph chat does not scale to zero", false},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newConsole(t, Options{Namespace: "lab", AllowChanges: true}, nil, sample()...)
			r := post(s, "/graphs/lab/"+c.graph+"/changes/wake", nil)
			r.Header.Set("Origin", s.base)
			r.AddCookie(s.enter())
			if status, body := do(t, r); status != http.StatusOK || !strings.Contains(words(body), c.says) {
				t.Errorf("%d %s", status, body)
			}
			if got := woken(t, s) != ""; got != c.wakes {
				t.Errorf("woken: %v", got)
			}
		})
	}
}

func TestWhoMayChangeTellsARollout(t *testing.T) {
	for rule, c := range map[string]struct{ order, says, annotation, value string }{
		"what was shown is aborted":                 {"abort?revision=8&step=2%2F2", "generation 3fa91c02 is to be aborted", v1alpha1.AnnotationRolloutAbort, "3fa91c02"},
		"what was shown is promoted":                {"promote?revision=8&step=2%2F2", "may pass step 2 of 2", v1alpha1.AnnotationRolloutPromote, "3fa91c02/2"},
		"a step that has passed is not promoted":    {"promote?revision=8&step=1%2F2", "has moved on", v1alpha1.AnnotationRolloutPromote, ""},
		"what cannot be undone is said as the verb": {"undo?revision=8&step=2%2F2", "graph assist has no revisions", v1alpha1.AnnotationRolloutPromote, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newConsole(t, Options{Namespace: "lab", AllowChanges: true}, nil, sample()...)
			r := post(s, "/graphs/lab/assist/rollout/orders/"+c.order, nil)
			r.Header.Set("Origin", s.base)
			r.AddCookie(s.enter())
			if status, body := do(t, r); status != http.StatusOK || !strings.Contains(words(body), c.says) {
				t.Errorf("%d %s", status, body)
			}
			var dgd v1alpha1.DynamoGraphDeployment
			if err := s.objects.Get(t.Context(), types.NamespacedName{Namespace: "lab", Name: "assist"}, &dgd); err != nil {
				t.Fatal(err)
			}
			if got := dgd.Annotations[c.annotation]; got != c.value {
				t.Errorf("%s is %q, want %q", c.annotation, got, c.value)
			}
		})
	}
}

// TestButtonsAreForWhoMayChange: a page without --allow-changes offers none, and with it
// those that make sense.
func TestButtonsAreForWhoMayChange(t *testing.T) {
	for path, want := range map[string][]string{
		"/graphs/lab/assist/rollout":  {"Promote step 2/2", "Promote all", "Pause", "Abort", "Undo"},
		"/graphs/lab/nightly":         {"Restart", "Wake"},
		"/graphs/lab/nightly/scaling": {"Wake"},
		"/graphs/lab/chat/scaling":    nil,
	} {
		for _, allowed := range []bool{false, true} {
			c := newConsole(t, Options{Namespace: "lab", AllowChanges: allowed}, nil, sample()...)
			r := get(c, path)
			r.AddCookie(c.enter())
			_, page := do(t, r)
			var found []string
			for _, b := range regexp.MustCompile(`<button[^>]*>([^<]*)</button>`).FindAllStringSubmatch(page, -1) {
				found = append(found, b[1])
			}
			expected := want
			if !allowed {
				expected = nil
			}
			if diff := cmp.Diff(expected, found); diff != "" {
				t.Errorf("%s, allowed %v: %s", path, allowed, diff)
			}
		}
	}
}

func TestEveryAnswerCarriesThePolicy(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, engines(), sample()...)
	cookie := c.enter()
	for _, path := range []string{"/", "/graphs/lab/chat", "/assets/console.js", "/nothing", "/reports/lab/fast-chat"} {
		r := get(c, path)
		r.AddCookie(cookie)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		policy := response.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src 'unsafe") || response.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %q", path, policy)
		}
		if path == "/reports/lab/fast-chat" && !strings.HasPrefix(policy, "sandbox;") {
			t.Errorf("a report of others is not shut in: %q", policy)
		}
	}
}

// asOther is set for this test program when it is started as another user.
const asOther = "CONSOLE_TEST_AS_OTHER"

func TestMain(m *testing.M) {
	if address := os.Getenv(asOther); address != "" {
		other(address)
		return
	}
	os.Exit(m.Run())
}

// other reads a page with the user's own cookie, and prints how that went.
func other(address string) {
	r, err := http.NewRequest(http.MethodGet, address, http.NoBody)
	if err == nil {
		name, value, _ := strings.Cut(os.Getenv(asOther+"_COOKIE"), "=")
		r.AddCookie(&http.Cookie{Name: name, Value: value})
		var response *http.Response
		if response, err = http.DefaultClient.Do(r); err == nil {
			fmt.Println(response.StatusCode)
			return
		}
	}
	fmt.Println(err)
}

// readAsOther makes a request as the user nobody, with the cookie of the one who
// started the console.
func readAsOther(t *testing.T, c console) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can act as another user")
	}
	cookie := c.enter()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "console-other-") // where others may look, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	program := folder + "/other"
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, body, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Dir = "/"
	command.Env = []string{asOther + "=" + c.base + "/graphs/lab/chat", asOther + "_COOKIE=" + cookie.Name + "=" + cookie.Value}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestAnotherUserOfTheMachineIsRefused(t *testing.T) {
	c := newConsole(t, Options{Namespace: "lab"}, nil, sample()...)
	if got := readAsOther(t, c); got != "403" {
		t.Errorf("another user's request with a stolen cookie: %s", got)
	}
}
