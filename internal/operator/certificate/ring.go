package certificate

import (
	"crypto/x509"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret. The first three are what any Secret for a server has; the
// others are only in one that we keep.
const (
	servingKey       = corev1.TLSPrivateKeyKey
	servingCert      = corev1.TLSCertKey
	trustedCerts     = "ca.crt"
	authorityCert    = "authority.crt"
	authorityKey     = "authority.key"
	nextAuthorCert   = "next-authority.crt"
	nextAuthorityKey = "next-authority.key"
)

// Life is how long certificates serve.
type Life struct {
	Serving   time.Duration
	Authority time.Duration
}

// ring is everything that the Secret holds.
//
//	authority --2/3 of its life--> next authority made, trusted by API servers
//	next      --1/6 of its life--> becomes the authority, signs a new certificate
//	serving   --2/3 of its life--> renewed
//	trusted   --expired----------> forgotten
type ring struct {
	authority, next, serving pair
	// trusted are all authorities whose certificates may still be served.
	trusted []*x509.Certificate
}

func readRing(data map[string][]byte) ring {
	return ring{
		authority: decode(data[authorityCert], data[authorityKey]),
		next:      decode(data[nextAuthorCert], data[nextAuthorityKey]),
		serving:   decode(data[servingCert], data[servingKey]),
		trusted:   decodeCertificates(data[trustedCerts]),
	}
}

func (r ring) write() (map[string][]byte, error) {
	data := map[string][]byte{}
	var errs []error
	put := func(p pair, certificate, key string) {
		c, k, err := p.encode()
		errs = append(errs, err)
		if c != nil {
			data[certificate], data[key] = c, k
		}
	}
	put(r.authority, authorityCert, authorityKey)
	put(r.next, nextAuthorCert, nextAuthorityKey)
	put(r.serving, servingCert, servingKey)
	for _, c := range r.trusted {
		data[trustedCerts] = append(data[trustedCerts], encodeCertificate(c)...)
	}
	return data, errors.Join(errs...)
}

// turn is the ring as it should be now. It never trusts an authority less than
// a certificate of it may still be served, and serves none before API servers
// had time to learn of its authority.
func (r ring) turn(names []string, now time.Time, life Life) (ring, error) {
	var err error
	switch {
	case !r.authority.valid(now) && r.next.valid(now):
		r.authority, r.next = r.next, pair{}
	case !r.authority.valid(now):
		if r.authority, err = newAuthority(now, life.Authority); err != nil {
			return r, err
		}
	case r.next.present() && (r.next.aged(now, 1, 6) || r.authority.aged(now, 11, 12)):
		r.authority, r.next = r.next, pair{}
	case !r.next.present() && r.authority.aged(now, 2, 3):
		if r.next, err = newAuthority(now, life.Authority); err != nil {
			return r, err
		}
	}
	if !r.serving.valid(now) || r.serving.aged(now, 2, 3) && r.serving.certificate.NotAfter.Before(r.authority.certificate.NotAfter) || !r.serving.signed(r.authority, names) {
		if r.serving, err = r.authority.serving(names, now, life.Serving); err != nil {
			return r, err
		}
	}
	r.trusted = trust(r, now)
	return r, nil
}

// trust are the authorities of which certificates are or may be served.
func trust(r ring, now time.Time) []*x509.Certificate {
	var list []*x509.Certificate
	for _, c := range append(slices.Clone(r.trusted), r.authority.certificate, r.next.certificate) {
		if c != nil && now.Before(c.NotAfter) && !slices.ContainsFunc(list, c.Equal) {
			list = append(list, c)
		}
	}
	return list
}
