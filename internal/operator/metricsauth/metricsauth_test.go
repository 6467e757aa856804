package metricsauth

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// server plays an API server that knows two tokens, one of which may read, and
// that fails for a third.
func server(t *testing.T, asked *int) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(object)
	}
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		*asked++
		review := &authenticationv1.TokenReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		switch token := review.Spec.Token; token {
		case "broken":
			w.WriteHeader(http.StatusForbidden) // the operator may not ask
			return
		case "reader", "stranger":
			review.Status.Authenticated, review.Status.User.Username = true, token
		default:
			review.Status.Error = "invalid bearer token"
		}
		review.APIVersion, review.Kind = "authentication.k8s.io/v1", "TokenReview"
		answer(w, review)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		want := authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		if diff := cmp.Diff(&want, review.Spec.NonResourceAttributes); diff != "" {
			t.Error(diff)
		}
		review.Status.Allowed = review.Spec.User == "reader"
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
		answer(w, review)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestFilter(t *testing.T) {
	for rule, c := range map[string]struct {
		authorization string
		code, asked   int
	}{
		"nobody":                            {"", http.StatusUnauthorized, 0},
		"another scheme":                    {"Basic cmVhZGVyOg==", http.StatusUnauthorized, 0},
		"an empty token":                    {"Bearer ", http.StatusUnauthorized, 0},
		"a made-up token, asked about once": {"Bearer made-up", http.StatusUnauthorized, 1},
		"somebody who may not":              {"Bearer stranger", http.StatusForbidden, 1},
		"somebody who may":                  {"bearer reader", http.StatusOK, 1},
		"nobody can be asked, now as well":  {"Bearer broken", http.StatusInternalServerError, 2},
	} {
		t.Run(rule, func(t *testing.T) {
			asked := 0
			s := server(t, &asked)
			filter, err := Filter(&rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, s.Client())
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
			for range 2 {
				request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
				if c.authorization != "" {
					request.Header.Set("Authorization", c.authorization)
				}
				answer := httptest.NewRecorder()
				guarded.ServeHTTP(answer, request)
				if answer.Code != c.code {
					t.Errorf("answer %d, want %d: %s", answer.Code, c.code, answer.Body)
				}
				if challenge := answer.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (c.code == http.StatusUnauthorized) {
					t.Errorf("challenge %q", challenge)
				}
			}
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}
