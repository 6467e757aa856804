package metricsauth

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
)

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	filter, err := TokenFile(path)(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := filter(logr.Discard(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token is handed on")
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule, file, authorization string
		code                      int
	}{
		{"no file, no token", "", "", http.StatusUnauthorized},
		{"no file, an empty token", "", "Bearer ", http.StatusUnauthorized},
		{"an empty file lets nobody in", "\n", "Bearer ", http.StatusUnauthorized},
		{"no token", "secret\n", "", http.StatusUnauthorized},
		{"another token", "secret\n", "Bearer secre", http.StatusUnauthorized},
		{"another scheme", "secret\n", "Basic secret", http.StatusUnauthorized},
		{"the token", "secret\n", "Bearer secret", http.StatusOK},
		{"the next token holds at once", "next", "Bearer next", http.StatusOK},
		{"and the last no longer", "next", "Bearer secret", http.StatusUnauthorized},
	} {
		if c.file != "" {
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		if c.authorization != "" {
			request.Header.Set("Authorization", c.authorization)
		}
		answer := httptest.NewRecorder()
		guarded.ServeHTTP(answer, request)
		if answer.Code != c.code {
			t.Errorf("%s: answer %d, want %d", c.rule, answer.Code, c.code)
		}
	}
}
