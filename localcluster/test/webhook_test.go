package test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
)

func TestAWebhookBehindAServiceIsAsked(t *testing.T) {
	client := sharedCluster(t).client(t)
	ns := newNamespace(t, client)
	_, _, listener := playPod(t, client, ns, 443, 9443)

	certificate, key, err := cert.GenerateSelfSignedCertKey("engine."+ns+".svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{
		Listener: listener,
		TLS:      &tls.Config{Certificates: []tls.Certificate{pair}},
		Config:   &http.Server{Handler: http.HandlerFunc(refuse)},
	}
	server.StartTLS()
	defer server.Close()

	hook, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: ns},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "engine.example.com",
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service:  &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "engine"},
					CABundle: lastCertificate(certificate),
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}},
				NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
				SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), hook.Name, metav1.DeleteOptions{})

	names := 0
	eventually(t, func(ctx context.Context) error { // the API server learns of webhooks with a delay
		names++
		_, err := client.CoreV1().ConfigMaps(ns).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", names)}}, metav1.CreateOptions{})
		if err == nil {
			return errors.New("the ConfigMap was admitted")
		}
		if !strings.Contains(err.Error(), "the engine says no") {
			return err
		}
		return nil
	})
}

func refuse(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "the engine says no"}}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(review)
}

// lastCertificate returns the authority of a chain in PEM.
func lastCertificate(chain []byte) (last []byte) {
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		last = pem.EncodeToMemory(block)
	}
	return last
}
