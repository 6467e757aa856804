package metricsauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TokenFile guards a server of metrics where the API server may not be asked: who shows
// the token in a file may read. The file is read for each request, so that a new token
// holds as soon as it is mounted. Without the file, or with an empty one, nobody may.
func TokenFile(path string) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
		return func(log logr.Logger, next http.Handler) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, err := os.ReadFile(path)
				if err != nil && !os.IsNotExist(err) {
					log.Error(err, "cannot read the scrape token")
				}
				want, got := strings.TrimSpace(string(text)), bearer(r)
				// Hashes are of one length, so that a comparison tells nothing of the token's.
				a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(got))
				if want == "" || got == "" || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
					w.Header().Set("WWW-Authenticate", "Bearer")
					http.Error(w, "the token of the operator's metrics is needed", http.StatusUnauthorized)
					return
				}
				r.Header.Del("Authorization") // nobody behind the guard needs it
				next.ServeHTTP(w, r)
			}), nil
		}, nil
	}
}
