// Package pki makes the certificates and keys of one cluster: two authorities and the service-account key that live as
// long as the cluster's directory, and leaf certificates issued anew at every start. It does not know who uses them.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// Clocks of a host that was suspended jump; a certificate from the future is refused everywhere.
	clockSlack = 10 * time.Minute
)

// Pair names the files of a certificate and its key.
type Pair struct{ Cert, Key string }

const (
	certificateSuffix = ".crt"
	keySuffix         = ".key"
)

func pairIn(dir, name string) Pair {
	path := filepath.Join(dir, name)
	return Pair{Cert: path + certificateSuffix, Key: path + keySuffix}
}

// authority signs leaf certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// openAuthority loads the authority in these files, making it if they do not exist.
func openAuthority(files Pair) (*authority, error) {
	cert, err := readCertificate(files.Cert)
	if errors.Is(err, os.ErrNotExist) {
		return createAuthority(files)
	}
	if err != nil {
		return nil, fmt.Errorf("load authority: %w", err)
	}
	key, err := readKey(files.Key)
	if err != nil {
		return nil, fmt.Errorf("load authority: %w", err)
	}
	return &authority{cert: cert, key: key}, nil
}

func createAuthority(files Pair) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", files.Cert, err)
	}
	name := "localcluster-" + strings.TrimSuffix(filepath.Base(files.Cert), certificateSuffix)
	template := newTemplate(pkix.Name{CommonName: name}, authorityLife)
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", files.Cert, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", files.Cert, err)
	}
	// The key first: a certificate without its key would be taken for a whole authority after an interruption.
	if err := writeKey(files.Key, key); err != nil {
		return nil, err
	}
	if err := writeCertificate(files.Cert, der); err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key}, nil
}

// client issues a certificate that authenticates as that user and groups.
func (a *authority) client(files Pair, user string, groups ...string) error {
	template := newTemplate(pkix.Name{CommonName: user, Organization: groups}, leafLife) //nolint:misspell // the field's name
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(files, template)
}

// server issues a certificate for these host names and addresses.
func (a *authority) server(files Pair, hosts ...string) error {
	template := newTemplate(pkix.Name{CommonName: hosts[0]}, leafLife)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(files, template)
}

func (a *authority) issue(files Pair, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("issue %s: %w", files.Cert, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("issue %s: %w", files.Cert, err)
	}
	if err := writeKey(files.Key, key); err != nil {
		return err
	}
	return writeCertificate(files.Cert, der)
}

// ensureKey makes a key without a certificate, once: tokens signed with it outlive a restart.
func ensureKey(file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("create key %s: %w", file, err)
	}
	return writeKey(file, key)
}

func newTemplate(subject pkix.Name, life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{ // without a serial number, x509 draws a random one
		Subject:               subject,
		NotBefore:             now.Add(-clockSlack),
		NotAfter:              now.Add(life),
		BasicConstraintsValid: true,
	}
}
