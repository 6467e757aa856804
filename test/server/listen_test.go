package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
)

// Hosts of this machine that an operator is told to listen on. The system
// chooses the ports.
const metricsHost, profileHost = "127.0.0.2", "127.0.0.3"

func TestProfilesAreServedWhereTheyAreConfiguredAndNowhereElse(t *testing.T) {
	w := newWorld(t)
	plain := fmt.Sprintf("metricsAddress: %q, healthAddress: %q", metricsHost+":0", "")
	without := w.operate("server: {" + plain + "}\n")
	with := w.operate("server: {" + plain + fmt.Sprintf(", profileAddress: %q}\n", profileHost+":0"))

	at := w.listens(without, metricsHost)
	w.answers(http.StatusOK, "http://"+at[metricsHost]+"/metrics", "")
	w.answers(http.StatusNotFound, "http://"+at[metricsHost]+"/debug/pprof/", "")

	at = w.listens(with, metricsHost, profileHost)
	w.answers(http.StatusNotFound, "http://"+at[metricsHost]+"/debug/pprof/", "")
	if text := w.answers(http.StatusOK, "http://"+at[profileHost]+"/debug/pprof/goroutine?debug=1", ""); !strings.Contains(text, "goroutine profile: total") {
		t.Errorf("answer %.200s", text)
	}
}

func TestSecureMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	w := newWorld(t)
	reader, stranger := w.account("reader"), w.account("stranger")
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "reader"}},
	})
	w.eventually("the binding to count", func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  fmt.Sprintf("system:serviceaccount:%s:reader", w.namespace),
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}
		if err := cluster.Client.Create(ctx, review); err != nil || !review.Status.Allowed {
			return errors.Join(err, errors.New("not allowed yet"))
		}
		return nil
	})
	o := w.operate(fmt.Sprintf("server: {metricsAddress: %q, secureMetrics: true, healthAddress: \"\"}\n", metricsHost+":0"))
	metrics := "https://" + w.listens(o, metricsHost)[metricsHost] + "/metrics"
	w.answers(http.StatusUnauthorized, metrics, "")
	w.answers(http.StatusUnauthorized, metrics, "made-up")
	w.answers(http.StatusForbidden, metrics, stranger)
	if text := w.answers(http.StatusOK, metrics, reader); !strings.Contains(text, "go_goroutines") {
		t.Errorf("answer %.200s", text)
	}
}

// TestSecureMetricsAreVerified scrapes as the ServiceMonitor of the chart does: by
// the authority in the Secret, under the name of the Service, from one
// certificate to the next.
func TestSecureMetricsAreVerified(t *testing.T) {
	w := newWorld(t)
	reader := w.account("reader")
	// What the operator may with its certificate in its own namespace.
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "certificate"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"webhook-server-cert"}, Verbs: []string{"get", "update"}}, {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}}},
	})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "certificate"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "certificate"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: localenv.OperatorKey.Namespace, Name: "dynamo-operator-controller-manager"}},
	})
	o := w.operate(fmt.Sprintf(`server: {metricsAddress: %q, secureMetrics: true, metricsService: scraped, healthAddress: ""}
webhook: {namespace: %s}
certificate: {validity: 20s, authorityValidity: 40s}
`, metricsHost+":0", w.namespace))
	address := w.listens(o, metricsHost)[metricsHost]
	seen := map[string]bool{}
	w.eventually("three certificates of two authorities", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "webhook-server-cert"}, secret); err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
			return errors.New("no authority")
		}
		hc := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "scraped." + w.namespace + ".svc"},
		}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+reader)
		response, err := hc.Do(request)
		if err != nil {
			if len(seen) > 0 {
				t.Fatalf("after %d names of certificates and authorities: %v", len(seen), err)
			}
			return err
		}
		response.Body.Close()
		leaf := response.TLS.PeerCertificates[0]
		seen[leaf.SerialNumber.String()], seen["by "+string(leaf.AuthorityKeyId)] = true, true
		if len(seen) < 5 {
			return fmt.Errorf("%d seen", len(seen))
		}
		return nil
	})
}

// account makes an account and returns its token.
func (w world) account(name string) string {
	w.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
	token, err := tokenOf(w.ctx, w.namespace, name)
	if err != nil {
		w.Fatal(err)
	}
	return token
}

// listens waits until an operator listens on these hosts, and sees that it does
// on no other.
func (w world) listens(o *operator, hosts ...string) map[string]string {
	w.Helper()
	at := map[string]string{}
	w.eventually(fmt.Sprintf("the operator to listen on %v", hosts), func(context.Context) error {
		found, err := process.Listening(o.process.Process.Pid)
		if err != nil {
			return err
		}
		clear(at)
		for _, one := range found {
			at[one.Addr().String()] = one.String()
		}
		for _, host := range hosts {
			if at[host] == "" {
				return fmt.Errorf("it listens on %v", found)
			}
		}
		return nil
	})
	if len(at) != len(hosts) {
		w.Errorf("the operator listens on %v", at)
	}
	for _, address := range at {
		if !netip.MustParseAddrPort(address).Addr().IsLoopback() {
			w.Errorf("the operator listens on %s", address)
		}
	}
	return at
}

// answers waits until a server answers with a code: it may listen before it can.
func (w world) answers(code int, url, token string) (text string) {
	w.Helper()
	hc := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it shows a certificate of its own making
	}}
	w.eventually(fmt.Sprintf("%d of %s", code, url), func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := hc.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != code {
			err = fmt.Errorf("%s: %.200s", response.Status, body)
		}
		text = string(body)
		return err
	})
	return text
}
