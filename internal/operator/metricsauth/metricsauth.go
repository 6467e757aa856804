// Package metricsauth authorises requests to the metrics endpoint, by TokenReview
// and SubjectAccessReview, or by a token from a file. An unknown token is answered
// with 401, a missing right with 403, and a review that failed with 500.
package metricsauth

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// How long answers of the API server are believed, and how long it is asked.
const (
	identityKept  = time.Minute
	allowedKept   = 5 * time.Minute
	deniedKept    = 30 * time.Second
	reviewTimeout = 10 * time.Second
)

// guard asks before it lets a request through.
type guard struct {
	tokens authenticator.Token
	rights authorizer.Authorizer
	log    logr.Logger
	next   http.Handler
}

// Filter guards a server of metrics. It is a provider of filters for one.
func Filter(config *rest.Config, hc *http.Client) (metricsserver.Filter, error) {
	identities, err := typedauthenticationv1.NewForConfigAndClient(config, hc)
	if err != nil {
		return nil, fmt.Errorf("set up reviews of tokens: %w", err)
	}
	reviews, err := typedauthorizationv1.NewForConfigAndClient(config, hc)
	if err != nil {
		return nil, fmt.Errorf("set up reviews of rights: %w", err)
	}
	rights, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: reviews, AllowCacheTTL: allowedKept, DenyCacheTTL: deniedKept,
		WebhookRetryBackoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("set up reviews of rights: %w", err)
	}
	tokens := cache.New(known(identities), false, identityKept, identityKept)
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return guard{tokens, rights, log, next}, nil
	}, nil
}

// known asks the API server whose a token is. That it is nobody's is an answer,
// not an error.
func known(client typedauthenticationv1.TokenReviewsGetter) authenticator.TokenFunc {
	return func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		review, err := client.TokenReviews().Create(ctx, asked, metav1.CreateOptions{})
		if err != nil || !review.Status.Authenticated {
			return nil, false, err
		}
		who := &user.DefaultInfo{Name: review.Status.User.Username, UID: review.Status.User.UID, Groups: review.Status.User.Groups}
		if len(review.Status.User.Extra) > 0 {
			who.Extra = map[string][]string{}
			for key, values := range review.Status.User.Extra {
				who.Extra[key] = values
			}
		}
		return &authenticator.Response{User: who}, true, nil
	}
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := bearer(r)
	if token == "" {
		unauthorized(w)
		return
	}
	who, ok, err := g.tokens.AuthenticateToken(r.Context(), token)
	switch {
	case err != nil:
		g.log.Error(err, "TokenReview failed")
		http.Error(w, "the API server does not say whose the token is", http.StatusInternalServerError)
		return
	case !ok:
		unauthorized(w)
		return
	}
	asked := authorizer.AttributesRecord{User: who.User, Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	decision, _, err := g.rights.Authorize(r.Context(), asked)
	switch {
	case err != nil:
		g.log.Error(err, "SubjectAccessReview failed", "user", who.User.GetName())
		http.Error(w, "the API server does not say what the token allows", http.StatusInternalServerError)
	case decision != authorizer.DecisionAllow:
		http.Error(w, fmt.Sprintf("%s may not %s %s", who.User.GetName(), asked.Verb, asked.Path), http.StatusForbidden)
	default:
		r.Header.Del("Authorization") // nobody behind the guard needs it
		g.next.ServeHTTP(w, r)
	}
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "a token that the API server knows is needed", http.StatusUnauthorized)
}

// bearer is the token of a request; empty if it has none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
