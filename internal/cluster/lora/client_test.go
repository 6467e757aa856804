package lora

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

var pod = netip.MustParseAddr("10.1.2.3")

// through makes a client whose way to pods is a proxy that answers itself, as
// the pod that is asked for would.
func through(t *testing.T, engine http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	proxy, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(proxy)
}

func TestWhatEnginesAreAsked(t *testing.T) {
	type asked struct{ Method, URL, Body, Type string }
	var got []asked
	client := through(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
			if r.Header.Get(name) != "" {
				t.Errorf("%s is sent", name)
			}
		}
		got = append(got, asked{r.Method, r.RequestURI, string(body), r.Header.Get("Content-Type")})
		fmt.Fprint(w, `{"status":"success","loras":{"b":2,"a":1},"count":2}`)
	})
	ctx := t.Context()
	if err := client.Load(ctx, pod, loraplan.Adapter{Name: "org/a", URI: "s3://b/a"}); err != nil {
		t.Error(err)
	}
	if had, err := client.Unload(ctx, pod, "org/a b?c"); err != nil || !had {
		t.Error(err)
	}
	names, err := client.List(ctx, netip.MustParseAddr("fd00::1"))
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := []asked{
		{"POST", "http://10.1.2.3:9090/v1/loras", `{"lora_name":"org/a","source":{"uri":"s3://b/a"}}`, "application/json"},
		{"DELETE", "http://10.1.2.3:9090/v1/loras/org/a%20b%3Fc", "", ""},
		{"GET", "http://[fd00::1]:9090/v1/loras", "", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStatusDecides(t *testing.T) {
	cases := map[string]struct {
		code int
		body string
		want string
	}{
		"success":                          {200, `{"status":"success"}`, ""},
		"an error with code 200":           {200, `{"status":"error","message":"download failed"}`, "the engine answered error: download failed"},
		"an error with code 500":           {500, `{"status":"error","message":"Endpoint 'load_lora' not found"}`, "the engine answered error: Endpoint 'load_lora' not found"},
		"code 200 alone proves nothing":    {200, `{}`, "HTTP 200 without a status in the answer"},
		"nor does another program":         {404, `Route not found`, "HTTP 404 without a status in the answer"},
		"a redirect is not followed":       {307, ``, "HTTP 307 without a status in the answer"},
		"a message is made fit for status": {200, `{"status":"error","message":"a\n\tb\u0007"}`, "the engine answered error: a b"},
		"an endless answer is cut off":     {200, `{"status":"success","message":"` + strings.Repeat("x", answerLimit) + `"}`, fmt.Sprintf("the answer is longer than %d bytes", answerLimit)},
		"a long message is shortened":      {200, `{"status":"error","message":"` + strings.Repeat("x", 1000) + `"}`, "the engine answered error: " + strings.Repeat("x", messageLimit-27) + "..."},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			client := through(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Host != "10.1.2.3:9090" {
					t.Errorf("%s was called", r.URL)
				}
				w.Header().Set("Location", "http://10.9.9.9:9090/v1/loras")
				w.WriteHeader(c.code)
				io.WriteString(w, c.body)
			})
			got := ""
			if err := client.Load(t.Context(), pod, loraplan.Adapter{Name: "a", URI: "s3://b/a"}); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestUnloadingWhatIsNotThereIsSuccess(t *testing.T) {
	for rule, c := range map[string]struct {
		list string
		fine bool
	}{
		"the list does not have it": {`{"status":"success","loras":{"b":1}}`, true},
		"the list has it":           {`{"status":"success","loras":{"a":1}}`, false},
		"there is no list":          {`{"status":"error"}`, false},
	} {
		t.Run(rule, func(t *testing.T) {
			client := through(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					io.WriteString(w, c.list)
					return
				}
				io.WriteString(w, `{"status":"error","message":"whatever an engine says"}`)
			})
			if had, err := client.Unload(t.Context(), pod, "a"); (err == nil) != c.fine || had == c.fine {
				t.Errorf("got %v, %v", had, err)
			}
		})
	}
}

func TestOnlyPodsAreCalled(t *testing.T) {
	client := through(t, func(http.ResponseWriter, *http.Request) { t.Error("a call was made") })
	for _, address := range []string{"127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "::ffff:127.0.0.1", "255.255.255.255"} {
		if _, err := client.List(t.Context(), netip.MustParseAddr(address)); err == nil {
			t.Errorf("%s was called", address)
		}
	}
	if _, err := client.List(t.Context(), netip.Addr{}); err == nil {
		t.Error("no address was called")
	}
	for _, name := range []string{"../../engine/sleep", "a/../../b", "/a"} {
		if _, err := client.Unload(t.Context(), pod, name); err == nil {
			t.Errorf("unload of %q was sent", name)
		}
	}
}

// An operator's environment may name a proxy for the way out of the cluster,
// where the calls must not go.
func TestTheEnvironmentNamesNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://10.9.9.9:1")
	request, err := http.NewRequest(http.MethodGet, "http://10.1.2.3:9090/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if proxy := NewClient(nil).http.Transport.(*http.Transport).Proxy; proxy != nil {
		used, err := proxy(request)
		t.Errorf("proxy %v, %v", used, err)
	}
}
