package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var hosts = Hosts{
	APIServer: []string{"127.0.0.1", "kubernetes.default.svc", "10.20.192.1"},
	Component: []string{"127.20.255.1"},
}

func TestEveryLeafIsTrustedForItsUse(t *testing.T) {
	b := ensure(t, t.TempDir())
	for name, tc := range map[string]struct {
		leaf  Pair
		ca    string
		usage x509.ExtKeyUsage
		host  string
	}{
		"the API server by address":                   {b.APIServer, b.CA, x509.ExtKeyUsageServerAuth, "10.20.192.1"},
		"the API server by name":                      {b.APIServer, b.CA, x509.ExtKeyUsageServerAuth, "kubernetes.default.svc"},
		"a component by address":                      {b.Component, b.CA, x509.ExtKeyUsageServerAuth, "127.20.255.1"},
		"the administrator":                           {b.Admin, b.CA, x509.ExtKeyUsageClientAuth, ""},
		"the front proxy, by an authority of its own": {b.FrontProxyClient, b.FrontProxyCA, x509.ExtKeyUsageClientAuth, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tls.LoadX509KeyPair(tc.leaf.Cert, tc.leaf.Key); err != nil {
				t.Fatal(err)
			}
			options := x509.VerifyOptions{Roots: pool(t, tc.ca), KeyUsages: []x509.ExtKeyUsage{tc.usage}, DNSName: tc.host}
			if _, err := certificate(t, tc.leaf.Cert).Verify(options); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClientsAreWhoKubernetesExpects(t *testing.T) {
	b := ensure(t, t.TempDir())
	got := map[string][]string{}
	for _, pair := range []Pair{b.Admin, b.ControllerManager, b.Scheduler, b.NodeAgent, b.Proxy, b.FrontProxyClient} {
		subject := certificate(t, pair.Cert).Subject
		got[subject.CommonName] = subject.Organization //nolint:misspell // the field's name
	}
	want := map[string][]string{
		"kubernetes-admin":               {"system:masters"},
		"system:kube-controller-manager": nil,
		"system:kube-scheduler":          nil,
		NodeAgentUser:                    nil,
		ProxyUser:                        nil,
		FrontProxyUser:                   nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("users and their groups (-want +got):\n%s", diff)
	}
}

func TestARestartKeepsWhatOthersHold(t *testing.T) {
	dir := t.TempDir()
	first := ensure(t, dir)
	before := map[string][]byte{}
	for _, file := range []string{first.CA, first.FrontProxyCA, first.ServiceAccountKey, first.Admin.Cert} {
		before[file] = read(t, file)
	}
	second := ensure(t, dir)
	for _, kept := range []string{second.CA, second.FrontProxyCA, second.ServiceAccountKey} {
		if !bytes.Equal(before[kept], read(t, kept)) {
			t.Errorf("%s changed", kept)
		}
	}
	if bytes.Equal(before[first.Admin.Cert], read(t, second.Admin.Cert)) {
		t.Error("the leaf certificate was not issued anew, so it will expire one day")
	}
}

func TestKeysArePrivate(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, keySuffix) {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func ensure(t *testing.T, dir string) Bundle {
	t.Helper()
	b, err := Ensure(dir, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pool(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	p.AddCert(certificate(t, file))
	return p
}

func certificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	cert, err := readCertificate(file)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
