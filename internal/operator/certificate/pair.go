package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// Backdate is how far before its making a certificate is valid from, for API
// servers whose clock is behind ours.
const Backdate = 5 * time.Minute

// pair is a certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func (p pair) present() bool { return p.certificate != nil }

// made is when the pair was made.
func (p pair) made() time.Time { return p.certificate.NotBefore.Add(Backdate) }

// life is how long the pair was meant to serve.
func (p pair) life() time.Duration { return p.certificate.NotAfter.Sub(p.made()) }

// aged reports whether a part of the pair's life is over.
func (p pair) aged(now time.Time, part, of int) bool {
	return !now.Before(p.made().Add(p.life() / time.Duration(of) * time.Duration(part)))
}

func (p pair) valid(now time.Time) bool {
	return p.present() && now.Before(p.certificate.NotAfter) && !now.Before(p.certificate.NotBefore)
}

// newAuthority makes a self-signed authority.
func newAuthority(now time.Time, life time.Duration) (pair, error) {
	return sign(pair{}, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "dynamo-operator webhook authority"},
		NotBefore:             now.Add(-Backdate),
		NotAfter:              now.Add(life),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	})
}

// serving makes a server's certificate. It does not outlive its authority.
func (p pair) serving(names []string, now time.Time, life time.Duration) (pair, error) {
	end := now.Add(life)
	if end.After(p.certificate.NotAfter) {
		end = p.certificate.NotAfter
	}
	hosts, addresses := split(names)
	return sign(p, &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    hosts,
		IPAddresses: addresses,
		NotBefore:   now.Add(-Backdate),
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// sign makes a key and a certificate for it, signed by an authority or by itself.
func sign(by pair, template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return pair{}, fmt.Errorf("make a serial number: %w", err)
	}
	parent, signer := template, crypto.Signer(key)
	if by.present() {
		parent, signer = by.certificate, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate %s: %w", template.Subject.CommonName, err)
	}
	certificate, err := x509.ParseCertificate(raw)
	return pair{certificate, key}, err
}

// signed reports whether an authority signed the pair, for these names.
func (p pair) signed(by pair, names []string) bool {
	if !p.present() || !by.present() || p.certificate.CheckSignatureFrom(by.certificate) != nil {
		return false
	}
	hosts, addresses := split(names)
	return slices.Equal(p.certificate.DNSNames, hosts) && slices.EqualFunc(p.certificate.IPAddresses, addresses, net.IP.Equal)
}

// split tells addresses from names: certificates keep them apart.
func split(names []string) (hosts []string, addresses []net.IP) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			addresses = append(addresses, ip)
		} else {
			hosts = append(hosts, name)
		}
	}
	return hosts, addresses
}

const certificateBlock, keyBlock = "CERTIFICATE", "EC PRIVATE KEY"

func encodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})
}

func (p pair) encode() (certificate, key []byte, err error) {
	if !p.present() {
		return nil, nil, nil
	}
	ec, ok := p.key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, errors.New("encode key: it is not of our making")
	}
	raw, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return encodeCertificate(p.certificate), pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: raw}), nil
}

// decode reads a pair of our own making; anything else is none.
func decode(certificate, key []byte) pair {
	list := decodeCertificates(certificate)
	block, _ := pem.Decode(key)
	if len(list) == 0 || block == nil || block.Type != keyBlock {
		return pair{}
	}
	private, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil || !private.PublicKey.Equal(list[0].PublicKey) {
		return pair{}
	}
	return pair{list[0], private}
}

func decodeCertificates(text []byte) []*x509.Certificate {
	var list []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == certificateBlock {
			list = append(list, c)
		}
	}
	return list
}
