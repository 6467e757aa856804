package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// The guards between a console and everybody else on its machine. Each stops an
// attack of its own; access_test.go makes them, and unguarded_test.go sees them work
// where the guard is left out.
const (
	// GuardHost stops DNS rebinding: a foreign name that leads to loopback.
	GuardHost guard.Guard = "console-host"
	// GuardOrigin stops requests that pages of other origins make.
	GuardOrigin guard.Guard = "console-origin"
	// GuardSession stops who has no cookie.
	GuardSession guard.Guard = "console-session"
	// GuardOnce stops who finds the URL later, in a terminal's history or a log.
	GuardOnce guard.Guard = "console-token-once"
	// GuardUser stops other users of this machine, even with a cookie: browsers send
	// cookies to every port of a host, so that one may leak to another's server.
	GuardUser guard.Guard = "console-local-user"
	// GuardChanges stops changes that nobody allowed.
	GuardChanges guard.Guard = "console-changes"
)

// policy lets a page load what this program serves and nothing else, and run no
// script that stands in a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// reportPolicy is for a profiler's report, which others wrote: it may show itself, in
// a frame of ours that shares nothing with the page around it.
const reportPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"

// access decides who may speak to the console.
type access struct {
	// hosts are the names under which it may be asked, with the port.
	hosts []string
	// cookie is its name: of the port, since cookies are shared by all ports of a host.
	cookie string
	// users are those of this machine that may connect.
	users []int

	mu      sync.Mutex
	token   string
	session string
}

func newAccess(port int, users []int) (*access, error) {
	a := &access{
		hosts:  []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)},
		cookie: fmt.Sprintf("dynamo-console-%d", port),
		users:  users,
	}
	var err error
	if a.token, err = secret(); err != nil {
		return nil, err
	}
	a.session, err = secret()
	return a, err
}

// secret is 256 bits that nobody guesses.
func secret() (string, error) {
	bytes := make([]byte, 32)
	if _, err := rand.Read(bytes); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return hex.EncodeToString(bytes), nil
}

// url is where a browser begins.
func (a *access) url() string { return "http://" + a.hosts[0] + "/?token=" + a.token }

type peerKey struct{}

// remember notes who connects, once a connection.
func (a *access) remember(ctx context.Context, c net.Conn) context.Context {
	uid, known := peer(c)
	if known && !slices.Contains(a.users, uid) {
		return context.WithValue(ctx, peerKey{}, uid)
	}
	return ctx
}

// protect lets through what may pass, and says in words what may not.
func (a *access) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if uid, foreign := r.Context().Value(peerKey{}).(int); foreign && !GuardUser.Off() {
			refuse(w, http.StatusForbidden, "Another user's console", fmt.Sprintf("User %d of this machine is not the one who started this console.", uid))
			return
		}
		if !slices.Contains(a.hosts, r.Host) && !GuardHost.Off() {
			refuse(w, http.StatusMisdirectedRequest, "Not the name of this console", "It answers as "+a.hosts[0]+" alone, so that no other site can pose as it.")
			return
		}
		if foreign(r) && !GuardOrigin.Off() {
			refuse(w, http.StatusForbidden, "A page of another site asked", "The console takes requests from its own pages alone.")
			return
		}
		if r.URL.Path == "/" && r.URL.Query().Has("token") {
			a.exchange(w, r)
			return
		}
		if !a.known(r) && !GuardSession.Off() {
			refuse(w, http.StatusUnauthorized, "This console does not know you", "Open the URL that kubectl dynamo ui printed. It works once; start the command again for another.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign reports whether a page of another origin made a request. Browsers say so in
// one of two headers; what is neither a read nor says where it comes from is foreign.
func foreign(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin != "" {
		return origin != "http://"+r.Host
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch site {
	case "same-origin", "none":
		return false
	case "":
		return !reads
	default: // a link elsewhere that leads here is followed, and carries no cookie
		return !reads || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
	}
}

// exchange gives the cookie for the token, once.
func (a *access) exchange(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	given := r.URL.Query().Get("token")
	if a.token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(a.token)) != 1 {
		if a.known(r) { // a page that is loaded again
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		refuse(w, http.StatusUnauthorized, "This URL has been used", "Its token works once. Start kubectl dynamo ui again for another.")
		return
	}
	if !GuardOnce.Off() {
		a.token = ""
	}
	http.SetCookie(w, &http.Cookie{Name: a.cookie, Value: a.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	// A page that goes on by itself, not a redirect: a strict cookie is not sent along
	// a redirect that began at another site, such as a terminal in a browser.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pages.ExecuteTemplate(w, "entered", nil) // who does not get it loads the page again
}

func (a *access) known(r *http.Request) bool {
	c, err := r.Cookie(a.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(a.session)) == 1
}

// refuse says no on a page that shows nothing of the cluster.
func refuse(w http.ResponseWriter, status int, title, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// The page is all that can be sent; who does not get it sees the status.
	_ = pages.ExecuteTemplate(w, "refused", map[string]string{"Title": title, "Text": text})
}
