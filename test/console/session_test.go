package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// session is a console that asks as an account of its own, and somebody who looks at it.
type session struct {
	account, base string
	cookie        *http.Cookie
	// see is how a page is read, if not by a request of ours: by a browser.
	see func(ctx context.Context, path string) (string, error)
}

// documented are the rights that docs/guide/console.md says are enough.
var documented = []rbacv1.PolicyRule{
	{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"dynamographdeployments", "dynamographdeploymentrequests", "dynamographdeploymentscalingadapters", "dynamocomponentdeployments", "dynamomodels"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"dynamographdeployments"}, Verbs: []string{"get"}},
	{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"list"}},
	{APIGroups: []string{""}, Resources: []string{"pods", "events", "nodes"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"pods/proxy", "pods/log", "configmaps"}, Verbs: []string{"get"}},
	{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"create", "get"}},
	{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"dynamoworkermetadatas"}, Verbs: []string{"list"}},
}

// everything is what an administrator may: a console that could write must not either.
var everything = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}

// account makes one with some rights, and returns how it reaches a cluster.
func account(t *testing.T, of *localenv.Cluster, name string, rights []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, err := range []error{
		of.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}),
		of.Client.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rights}),
		of.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := of.Client.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, token); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(of.Config)
	config.BearerToken = token.Status.Token
	return config
}

// open runs a console of all namespaces as an account with some rights, and enters it.
func open(t *testing.T, name string, rights []rbacv1.PolicyRule, options ...func(*console.Options)) *session {
	t.Helper()
	to, err := connect.To(account(t, cluster, name, rights), "")
	if err != nil {
		t.Fatal(err)
	}
	o := console.Options{Cluster: to}
	for _, set := range options {
		set(&o)
	}
	server, err := console.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return enter(t, "system:serviceaccount:"+namespace+":"+name, server.URL())
}

// enter exchanges the token in a console's URL.
func enter(t *testing.T, account, address string) *session {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || len(response.Cookies()) != 1 {
		t.Fatalf("the token is not taken: %s", response.Status)
	}
	return &session{account: account, base: "http://" + at.Host, cookie: response.Cookies()[0]}
}

func (s *session) do(ctx context.Context, method, path string, form url.Values) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", s.base)
	}
	r.AddCookie(s.cookie)
	return http.DefaultClient.Do(r)
}

// page is what the console answers.
func (s *session) page(ctx context.Context, method, path string, form url.Values) (string, error) {
	response, err := s.do(ctx, method, path, form)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, words(string(text)))
	}
	return string(text), err
}

func (s *session) get(ctx context.Context, path string) (string, error) {
	if s.see != nil {
		return s.see(ctx, path)
	}
	return s.page(ctx, http.MethodGet, path, nil)
}

// stream is an open page: the blocks that came, each in its latest state.
type stream struct {
	path    string
	changed chan struct{}

	mu     sync.Mutex
	blocks map[string]string
	pieces int
	ended  error
}

// follow opens a stream that stays until the test ends.
func (s *session) follow(t *testing.T, path string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	response, err := s.do(ctx, http.MethodGet, path, nil)
	if err != nil || response.Header.Get("Content-Type") != "text/event-stream" {
		cancel()
		t.Fatalf("%s: %v, %v", path, response, err)
	}
	read := &stream{path: path, changed: make(chan struct{}, 1), blocks: map[string]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer response.Body.Close()
		read.all(response.Body)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return read
}

func (s *stream) all(from io.Reader) {
	name, data := "", []string(nil)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data = append(data, line[len("data: "):])
		case line == "":
			s.note(func() {
				s.blocks[name] = strings.Join(data, "\n")
				if name == "piece" {
					s.pieces++
				}
			})
			name, data = "", nil
		}
	}
	s.note(func() { s.ended = errors.Join(lines.Err(), io.EOF) })
}

func (s *stream) note(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// patience is for a busy machine; what works takes seconds.
const patience = 4 * time.Minute

// until waits for blocks that are as they should be.
func (s *stream) until(t *testing.T, what string, right func(blocks map[string]string) error) {
	t.Helper()
	for deadline := time.After(patience); ; {
		s.mu.Lock()
		blocks, ended := maps.Clone(s.blocks), s.ended
		s.mu.Unlock()
		err := right(blocks)
		if err == nil {
			return
		}
		if ended != nil {
			t.Fatalf("%s ended before %s: %v: %v", s.path, what, ended, err)
		}
		select {
		case <-s.changed:
		case <-deadline:
			t.Fatalf("%s does not show %s: %v", s.path, what, err)
		}
	}
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cluster.Eventually(ctx, what, try); err != nil {
		t.Fatal(err)
	}
}

var tag = regexp.MustCompile(`<[^>]*>`)

// words are a page's text without its markup, in one line.
func words(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(page, " "))), " ")
}

var (
	line  = regexp.MustCompile(`(?s)<tr[ >](.*?)</tr>`)
	cell  = regexp.MustCompile(`(?s)<t[hd][^>]* data-label="([^"]*)"[^>]*>(.*?)</t[hd]>`)
	marks = strings.NewReplacer("✓ ", "", "✕ ", "", "◐ ", "", "○ ", "")
)

// rows are the lines of all tables of a page, by the names of their columns.
func rows(page string) []map[string]string {
	var all []map[string]string
	for _, l := range line.FindAllStringSubmatch(page, -1) {
		cells := map[string]string{}
		if of := generation.FindStringSubmatch(l[1]); of != nil {
			cells["Generation"] = of[1]
		}
		for _, c := range cell.FindAllStringSubmatch(l[1], -1) {
			cells[c[1]] = marks.Replace(words(c[2]))
		}
		all = append(all, cells)
	}
	return all
}

var generation = regexp.MustCompile(`^data-generation="([^"]*)"`)

// table reads a page's table by the name of its first column, and of each line some
// columns.
func table(page, first string, columns ...string) map[string][]string {
	found := map[string][]string{}
	for _, cells := range rows(page) {
		name, ours := cells[first]
		if !ours {
			continue
		}
		found[name] = []string{}
		for _, c := range columns {
			found[name] = append(found[name], cells[c])
		}
	}
	return found
}
