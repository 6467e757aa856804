package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAnOperatorOfOneNamespaceIsScraped installs one with the rights of its
// namespace alone, whose metrics are read by the token of a Secret, and then gives it
// the one right that it takes to ask who a scraper is.
func TestAnOperatorOfOneNamespaceIsScraped(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	const name, team = "own", "team-metrics"
	if err := cluster.InstallAPI(ctx); err != nil {
		t.Fatal(err)
	}
	service := types.NamespacedName{Namespace: team, Name: name + "-dynamo-operator"}
	values := []string{
		"--namespace", team, "--values", "-", "--wait", "--timeout", "5m", "--set", "dynamo-operator.controllerManager.replicas=1",
		"--set", "dynamo-operator.namespaceRestriction.enabled=true", "--set", "dynamo-operator.webhook.enabled=false",
	}
	helmDo(ctx, t, append([]string{"install", name, platform, "--create-namespace"}, values...)...)
	t.Cleanup(func() {
		helmDo(context.Background(), t, "uninstall", name, "--namespace", team, "--wait", "--timeout", "5m")
	})
	secret := &corev1.Secret{}
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: team, Name: service.Name + "-metrics-token"}, secret); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "a scraper without the token to be refused", func(ctx context.Context) error {
		return scrape(ctx, service, "made-up", http.StatusUnauthorized)
	})
	eventually(ctx, t, "a scraper with the token to be answered", func(ctx context.Context) error {
		return scrape(ctx, service, string(secret.Data["token"]), http.StatusOK)
	})
	helmDo(ctx, t, append([]string{"upgrade", name, platform, "--set", "dynamo-operator.metricsService.bindAuthDelegator=true"}, values...)...)
	scraped(ctx, t, service, service.Name+"-metrics-reader-"+team)
}

// scraped reads the metrics of an operator as its ServiceMonitor does: under the
// name of the Service, verified by the authority in the Secret, with a token of
// an account that may. Without the right it is refused.
func scraped(ctx context.Context, t *testing.T, service types.NamespacedName, role string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: "scraper"}}
	if err := client.IgnoreAlreadyExists(cluster.Client.Create(ctx, account)); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := cluster.Client.SubResource("token").Create(ctx, account, request); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "a scraper without the right to be refused", func(ctx context.Context) error {
		return scrape(ctx, service, request.Status.Token, http.StatusForbidden)
	})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper-" + service.Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	if err := cluster.Client.Create(ctx, binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Client.Delete(context.Background(), binding); err != nil {
			t.Error(err)
		}
	})
	eventually(ctx, t, "a scraper with the right to be answered", func(ctx context.Context) error {
		return scrape(ctx, service, request.Status.Token, http.StatusOK)
	})
}

func scrape(ctx context.Context, service types.NamespacedName, token string, want int) error {
	secret := &corev1.Secret{}
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: service.Namespace, Name: "webhook-server-cert"}, secret); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return errors.New("the Secret has no authority yet")
	}
	transport := cluster.HTTP.Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives, transport.TLSClientConfig = true, &tls.Config{RootCAs: roots}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s.%s.svc:8443/metrics", service.Name, service.Namespace), http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != want:
		return fmt.Errorf("%s: %.200s", response.Status, text)
	case want == http.StatusOK && !strings.Contains(string(text), "dynamo_operator_certificate_refresh_failed 0"):
		return errors.New("these are not the operator's metrics, or its certificate is not well")
	}
	return nil
}
