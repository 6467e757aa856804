package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/logfile"
)

// onePod is a node with one pod on it.
type onePod struct {
	path    string
	running atomic.Bool
	host    string
}

func (p *onePod) Log(namespace, pod, _ string, previous bool) (string, func() bool, error) {
	switch {
	case pod != "p":
		return "", nil, NotFoundError{namespace, pod}
	case previous:
		return "", nil, errors.New("no run before this one")
	}
	return p.path, p.running.Load, nil
}

func (p *onePod) Host(string, string) (string, error) { return p.host, nil }

// authority makes a CA and a client certificate of it.
func authority(t *testing.T) (*x509.CertPool, tls.Certificate) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(err)
	ca, err = x509.ParseCertificate(caDER)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	must(err)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return pool, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serve starts the API; the client has a certificate, the stranger has none.
func serve(t *testing.T, pods Pods) (base string, client, stranger *http.Client, config *tls.Config) {
	t.Helper()
	pool, cert := authority(t)
	srv := httptest.NewUnstartedServer(Handler(pods))
	srv.TLS = &tls.Config{ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	stranger = srv.Client()
	config = stranger.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.Certificates = []tls.Certificate{cert}
	return srv.URL, &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, stranger, config
}

func fetch(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAccess(t *testing.T) {
	base, client, stranger, _ := serve(t, &onePod{})
	for name, c := range map[string]struct {
		client *http.Client
		path   string
		want   int
	}{
		"anyone may ask whether it is there":          {stranger, "/healthz", 200},
		"a stranger reads no logs":                    {stranger, "/containerLogs/ns/p/main", 401},
		"a stranger is not told that exec is in vain": {stranger, "/exec/ns/p/main", 401},
		"nobody runs anything":                        {client, "/exec/ns/p/main", 501},
		"a pod of nowhere is not found":               {client, "/containerLogs/ns/zz/main", 404},
		"a run of nowhere is refused":                 {client, "/containerLogs/ns/p/main?previous=true", 400},
		"a bad parameter is refused":                  {client, "/containerLogs/ns/p/main?tailLines=x", 400},
	} {
		t.Run(name, func(t *testing.T) {
			if got, body := fetch(t, c.client, base+c.path); got != c.want {
				t.Errorf("status %d, want %d: %s", got, c.want, body)
			}
		})
	}
}

func TestLogs(t *testing.T) {
	pod := &onePod{path: filepath.Join(t.TempDir(), "0.log")}
	log, err := logfile.Create(pod.path)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(log.Stdout(), "one\ntwo\n")
	fmt.Fprint(log.Stderr(), "three\n")
	log.Close()
	base, client, _, _ := serve(t, pod)
	for name, c := range map[string]struct{ query, want string }{
		"all of it":           {"", "one\ntwo\nthree\n"},
		"the last lines":      {"?tailLines=1", "three\n"},
		"the first bytes":     {"?limitBytes=5", "one\nt"},
		"one stream":          {"?stream=Stderr", "three\n"},
		"nothing that is old": {"?sinceTime=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339)), ""},
		"what is young":       {"?sinceSeconds=3600", "one\ntwo\nthree\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, got := fetch(t, client, base+"/containerLogs/ns/p/main"+c.query); code != 200 || got != c.want {
				t.Errorf("%d %q, want %q", code, got, c.want)
			}
		})
	}
	t.Run("with the time of each line", func(t *testing.T) {
		_, got := fetch(t, client, base+"/containerLogs/ns/p/main?timestamps=true&tailLines=1")
		at, rest, _ := strings.Cut(got, " ")
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil || rest != "three\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestAFollowedLogEndsWithItsRun(t *testing.T) {
	pod := &onePod{path: filepath.Join(t.TempDir(), "0.log")}
	pod.running.Store(true)
	log, err := logfile.Create(pod.path)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(log.Stdout(), "one")
	base, client, _, _ := serve(t, pod)
	resp, err := client.Get(base + "/containerLogs/ns/p/main?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "one\n" {
		t.Fatalf("first line %q, %v", line, err)
	}
	fmt.Fprintln(log.Stdout(), "two")
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "two\n" {
		t.Fatalf("second line %q, %v", line, err)
	}
	pod.running.Store(false)
	log.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("then %q, %v", rest, err)
	}
}

func TestPortForward(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer target.Close()
	host, port, err := net.SplitHostPort(target.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	base, _, _, config := serve(t, &onePod{host: host})
	address, err := url.Parse(base + "/portForward/ns/p")
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{Host: base, TLSClientConfig: rest.TLSClientConfig{Insecure: true, CertData: pemOf(t, config), KeyData: keyOf(t, config)}})
	if err != nil {
		t.Fatal(err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	stop, ready := make(chan struct{}), make(chan struct{})
	var messages bytes.Buffer
	forward, err := portforward.New(dialer, []string{"0:" + port}, stop, ready, io.Discard, &messages)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- forward.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	ports, err := forward.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	if _, got := fetch(t, http.DefaultClient, "http://127.0.0.1:"+strconv.Itoa(int(ports[0].Local))); got != "hello" {
		t.Errorf("got %q; %s", got, &messages)
	}
	close(stop)
	<-done
}

func pemOf(t *testing.T, c *tls.Config) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificates[0].Certificate[0]})
}

func keyOf(t *testing.T, c *tls.Config) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
