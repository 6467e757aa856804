package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var (
	names = []string{"hook.lab.svc", "hook.lab.svc.cluster.local"}
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	brief = Life{Serving: time.Minute, Authority: 2 * time.Minute}
)

// TestAClientThatLagsBehindTrustsEveryCertificate walks through an hour of
// one-minute certificates. The client trusts what was published some seconds
// ago, the server serves what was written some seconds ago: never do they not
// understand each other.
func TestAClientThatLagsBehindTrustsEveryCertificate(t *testing.T) {
	const step, lag = 2 * time.Second, 5 // in steps
	var history []ring
	var r ring
	authorities := map[string]bool{}
	for now := start; now.Before(start.Add(time.Hour)); now = now.Add(step) {
		var err error
		if r, err = r.turn(names, now, brief); err != nil {
			t.Fatal(err)
		}
		history = append(history, r)
		authorities[r.authority.certificate.SerialNumber.String()] = true
		if len(history) <= lag {
			continue
		}
		past := history[len(history)-1-lag]
		verify(t, r.trusted, past.serving.certificate, now)
		verify(t, past.trusted, r.serving.certificate, now)
		if len(r.trusted) > 3 {
			t.Fatalf("%s: %d authorities are trusted", now, len(r.trusted))
		}
	}
	if len(authorities) < 20 {
		t.Errorf("%d authorities in an hour, want a rotation every two minutes or less", len(authorities))
	}
}

func verify(t *testing.T, trusted []*x509.Certificate, served *x509.Certificate, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	for _, c := range trusted {
		roots.AddCert(c)
	}
	if _, err := served.Verify(x509.VerifyOptions{DNSName: names[0], Roots: roots, CurrentTime: now}); err != nil {
		t.Fatalf("%s: %v", now.Sub(start), err)
	}
}

func TestTurn(t *testing.T) {
	fresh, err := ring{}.turn(names, start, brief)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		after                      time.Duration
		names                      []string
		sameServing, sameAuthority bool
		next                       bool
	}{
		"a fresh ring stays as it is":                                {after: time.Second, names: names, sameServing: true, sameAuthority: true},
		"a certificate is renewed at two thirds":                     {after: 40 * time.Second, names: names, sameAuthority: true},
		"another name needs another certificate":                     {after: time.Second, names: []string{"other"}, sameAuthority: true},
		"the next authority is made at two thirds, and not used yet": {after: 80 * time.Second, names: names, sameAuthority: true, next: true},
		"an authority that has ended is replaced":                    {after: time.Hour, names: names},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			got, err := fresh.turn(c.names, start.Add(c.after), brief)
			if err != nil {
				t.Fatal(err)
			}
			if same := got.serving.certificate.Equal(fresh.serving.certificate); same != c.sameServing {
				t.Errorf("same certificate: %v", same)
			}
			if same := got.authority.certificate.Equal(fresh.authority.certificate); same != c.sameAuthority {
				t.Errorf("same authority: %v", same)
			}
			if got.next.present() != c.next {
				t.Errorf("next authority: %v", got.next.present())
			}
		})
	}
}

func TestAMangledSecretIsMended(t *testing.T) {
	for rule, data := range map[string]map[string][]byte{
		"of nothing":    nil,
		"of noise":      {servingCert: []byte("x"), servingKey: []byte("y"), authorityCert: []byte("z"), trustedCerts: {0xff}},
		"with half":     {authorityCert: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
		"of other keys": {"other": []byte("x")},
	} {
		t.Run(rule, func(t *testing.T) {
			r, err := readRing(data).turn(names, start, brief)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, r.trusted, r.serving.certificate, start)
			written, err := r.write()
			if err != nil {
				t.Fatal(err)
			}
			again, err := readRing(written).turn(names, start.Add(time.Second), brief)
			if err != nil {
				t.Fatal(err)
			}
			if !again.serving.certificate.Equal(r.serving.certificate) {
				t.Error("what was written is not read again")
			}
		})
	}
}

// TestReplicasShareOneCertificate starts them at once over an empty namespace.
func TestReplicasShareOneCertificate(t *testing.T) {
	server := fake.NewClientBuilder().Build()
	clock := testingclock.NewFakeClock(start)
	replicas := make([]*Keeper, 3)
	errs := make(chan error)
	for i := range replicas {
		replicas[i] = keeper(server, clock)
		go func() { errs <- replicas[i].Look(context.Background()) }()
	}
	for range replicas {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, r := range replicas {
		if err := r.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !leaf(t, r).Equal(leaf(t, replicas[0])) {
			t.Error("replicas serve different certificates")
		}
	}
	before := leaf(t, replicas[0])
	clock.Step(45 * time.Second)
	for _, r := range replicas {
		if err := r.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if leaf(t, replicas[2]).Equal(before) || !leaf(t, replicas[2]).Equal(leaf(t, replicas[0])) {
		t.Error("a renewed certificate is not served by all")
	}
}

func TestAnExternalSecretIsOnlyRead(t *testing.T) {
	r, err := ring{}.turn(names, start, brief)
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.write()
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Namespace: "lab", Name: "cert"}
	server := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data:       map[string][]byte{servingCert: data[servingCert], servingKey: data[servingKey]},
	}).Build()
	clock := testingclock.NewFakeClock(start)
	k := keeper(server, clock)
	k.External = true
	for range 2 {
		if err := k.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Hour) // long after its end
	}
	var secret corev1.Secret
	if err := server.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.Data) != 2 {
		t.Errorf("the Secret was written: %d keys", len(secret.Data))
	}
}

func TestTheCertificateServes(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	var trusted []byte
	k := keeper(fake.NewClientBuilder().Build(), clock)
	k.Publish = func(_ context.Context, bundle []byte) error { trusted = bundle; return nil }
	if _, err := k.Certificate(nil); err == nil {
		t.Error("there is a certificate before there is one")
	}
	if err := k.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go tls.Server(a, &tls.Config{GetCertificate: k.Certificate, MinVersion: tls.VersionTLS12}).Handshake()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	if err := tls.Client(b, &tls.Config{RootCAs: roots, ServerName: names[0], MinVersion: tls.VersionTLS12}).Handshake(); err != nil {
		t.Error(err)
	}
}

func keeper(server client.Client, clock *testingclock.FakeClock) *Keeper {
	return &Keeper{Direct: server, Secret: types.NamespacedName{Namespace: "lab", Name: "cert"}, Names: names, Life: brief, Clock: clock}
}

func leaf(t *testing.T, k *Keeper) *x509.Certificate {
	t.Helper()
	c, err := k.Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf
}

// TestAnEmptyBundleIsNeverPublished has Secrets of others without an authority.
func TestAnEmptyBundleIsNeverPublished(t *testing.T) {
	made, err := ring{}.turn(names, start, brief)
	if err != nil {
		t.Fatal(err)
	}
	data, err := made.write()
	if err != nil {
		t.Fatal(err)
	}
	for rule, c := range map[string]struct {
		inSecret, configured, want string
	}{
		"the Secret's authority":                          {inSecret: string(data[trustedCerts]), want: string(data[trustedCerts])},
		"the configured one where the Secret has none":    {configured: string(data[trustedCerts]), want: string(data[trustedCerts])},
		"the Secret's before the configured one":          {inSecret: string(data[trustedCerts]), configured: "x", want: string(data[trustedCerts])},
		"neither":                                         {},
		"what is no certificate":                          {inSecret: "spoilt", configured: "Q0E="},
		"the configured one where the Secret's is spoilt": {inSecret: "spoilt", configured: string(data[trustedCerts]), want: string(data[trustedCerts])},
	} {
		t.Run(rule, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "certs"}, Data: map[string][]byte{
				servingCert: data[servingCert], servingKey: data[servingKey], trustedCerts: []byte(c.inSecret),
			}}
			published := 0
			k := &Keeper{
				Direct: fake.NewClientBuilder().WithObjects(secret).Build(), Secret: client.ObjectKeyFromObject(secret),
				External: true, Authorities: []byte(c.configured), Clock: testingclock.NewFakeClock(start),
				Publish: func(_ context.Context, trusted []byte) error {
					published++
					if string(trusted) != c.want {
						t.Errorf("published %q", trusted)
					}
					return nil
				},
			}
			err := k.Look(t.Context())
			if none := errors.Is(err, ErrNoAuthority); none != (c.want == "") || !none && err != nil || none != (published == 0) {
				t.Errorf("published %d times: %v", published, err)
			}
			if !k.Held() {
				t.Error("the certificate is not served")
			}
		})
	}
}
