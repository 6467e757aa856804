package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/certificate"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// TestNoAdmissionFailsWhileCertificatesRotate runs two replicas through half an
// hour of one-minute certificates, on a clock of its own. The client takes a
// while to learn of new authorities, as API servers do, and opens a connection
// for each request.
func TestNoAdmissionFailsWhileCertificatesRotate(t *testing.T) {
	const step, lag = 3 * time.Second, 2 // in steps
	clock := testingclock.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	cluster := fake.NewClientBuilder().Build()
	var published [][]byte
	var replicas [2]*certificate.Keeper
	var servers [2]*Server
	for i := range replicas {
		replicas[i] = &certificate.Keeper{
			Direct: cluster, Secret: types.NamespacedName{Namespace: "lab", Name: "cert"}, Names: []string{"hook"},
			Life: certificate.Life{Serving: time.Minute, Authority: 2 * time.Minute}, Clock: clock,
		}
		servers[i] = &Server{Address: "127.0.0.1:0", Certificate: replicas[i].Certificate, AnswerTimeout: 10 * time.Second, Clock: clock}
		go servers[i].Start(t.Context())
	}
	replicas[0].Publish = func(_ context.Context, trusted []byte) error { published = append(published, trusted); return nil }
	for _, s := range servers {
		for s.Listening() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	seen := map[string]bool{}
	admissions := 0
	for range int(30 * time.Minute / step) {
		clock.Step(step)
		for i, k := range replicas {
			if i == 1 && len(published)%3 != 0 {
				continue // the second replica looks less often
			}
			if err := k.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		trusted := published[max(0, len(published)-1-lag)]
		for i, s := range servers {
			if !replicas[i].Held() {
				continue
			}
			serial, err := admit(s, trusted, clock.Now())
			if err != nil {
				t.Fatalf("admission %d: %v", admissions, err)
			}
			seen[serial] = true
			admissions++
		}
	}
	summary.Line(t, "rotation: %d admissions by two replicas, %d certificates, 0 failures", admissions, len(seen))
	if len(seen) < 20 {
		t.Errorf("only %d certificates were served", len(seen))
	}
}

// admit asks over a new connection and returns the certificate's serial number.
func admit(s *Server, trusted []byte, now time.Time) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: "hook", MinVersion: tls.VersionTLS12, Time: func() time.Time { return now },
	}}
	body := strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":{"spec":{"services":{"a":{}}}}}}`)
	response, err := (&http.Client{Transport: transport}).Post(fmt.Sprintf("https://%s%s", s.Listening(), Kinds[1].Path()), "application/json", body)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 1 {
		return "", fmt.Errorf("answer %s %s", response.Proto, response.Status)
	}
	return response.TLS.PeerCertificates[0].SerialNumber.String(), nil
}

func TestOldProtocolsAreRefused(t *testing.T) {
	s := &Server{Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}
	if c := s.TLS(); c.MinVersion < tls.VersionTLS12 || len(c.NextProtos) != 1 || c.NextProtos[0] != "http/1.1" {
		t.Errorf("TLS from %x, protocols %v", c.MinVersion, c.NextProtos)
	}
}
