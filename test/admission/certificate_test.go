package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/admission"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/certificate"
)

// The operator runs here with a certificate that somebody else keeps: the test
// plays who writes the Secret, and a real API server asks. Tests of this package
// run one after the other, and each of these waits at its end until the API
// server asks nobody any more.

// TestAnExternalCertificate comes late, changes with its authority, and is
// spoilt: what was good is served on.
func TestAnExternalCertificate(t *testing.T) {
	o := newOperator(t, `{mode: external, secret: certs, validity: 12s, authorityValidity: 24s}`)
	o.eventually("the operator to say that there is no certificate", func(context.Context) error {
		if log := o.log(); !strings.Contains(log, "certificate refresh failed, retrying") {
			return errors.New(log)
		}
		return nil
	})
	if _, err := o.registration(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("registered without a certificate: %v", err)
	}
	for _, name := range []string{"the first certificate", "one of another authority"} {
		a := newAuthority(t, name)
		o.write(a.secret(t))
		o.eventually(name+" to be served, trusted and asked", func(ctx context.Context) error {
			registered, err := o.registration(ctx)
			if err != nil {
				return err
			}
			for _, w := range registered.Webhooks {
				if !bytes.Equal(w.ClientConfig.CABundle, a.bundle) {
					return fmt.Errorf("%s trusts another authority", w.Name)
				}
			}
			return errors.Join(o.serves(a), o.refuses(ctx))
		})
	}
	last := o.leaf()
	o.write(map[string][]byte{corev1.TLSCertKey: []byte("x"), corev1.TLSPrivateKeyKey: []byte("y"), "ca.crt": []byte("z")})
	o.eventually("the operator to say what is wrong with the Secret", func(context.Context) error {
		if log := o.log(); !strings.Contains(log, "read Secret "+o.namespace+"/certs") || !strings.Contains(log, "PEM") {
			return errors.New(log)
		}
		return nil
	})
	if now := o.leaf(); last == nil || now == nil || !now.Equal(last) {
		t.Error("a spoilt Secret takes the certificate away")
	}
	o.eventually("bad objects to be refused as before", o.refuses)
	o.onlyRead()
}

// TestACertificateOfCertManager leaves it to cert-manager to have its authority
// trusted, and to nobody else to change the rest.
func TestACertificateOfCertManager(t *testing.T) {
	o := newOperator(t, `{mode: cert-manager, certManagerCertificate: certs/serving, secret: certs, validity: 12s, authorityValidity: 24s}`)
	for _, name := range []string{"the first certificate", "one of another authority"} {
		a := newAuthority(t, name)
		o.write(a.secret(t))
		o.eventually(name+" to be injected", func(ctx context.Context) error { return o.inject(ctx, a) })
		o.eventually(name+" to be served, trusted and asked", func(ctx context.Context) error {
			return errors.Join(o.serves(a), o.refuses(ctx))
		})
	}
	var injected []byte
	o.eventually("a registration that somebody changes", func(ctx context.Context) error {
		registered, err := o.registration(ctx)
		if err != nil {
			return err
		}
		for i := range registered.Webhooks {
			injected = registered.Webhooks[i].ClientConfig.CABundle
			registered.Webhooks[i].FailurePolicy = new(admissionregistrationv1.Fail)
		}
		return o.server.Update(ctx, registered)
	})
	o.eventually("it to be mended, and the authority left alone", func(ctx context.Context) error {
		registered, err := o.registration(ctx)
		if err != nil {
			return err
		}
		for _, w := range registered.Webhooks {
			if !bytes.Equal(w.ClientConfig.CABundle, injected) {
				t.Errorf("%s: the authority was taken away", w.Name)
			}
			if *w.FailurePolicy != admissionregistrationv1.Ignore {
				return fmt.Errorf("%s: %s", w.Name, *w.FailurePolicy)
			}
		}
		return o.refuses(ctx)
	})
	o.onlyRead()
}

// TestACertificateWithoutAnAuthority plays a tenant who sends a bad graph while
// the Secret has no ca.crt. A registration with an empty bundle lets it pass, as
// the test shows; so none is made, and one that was good stays as it is.
func TestACertificateWithoutAnAuthority(t *testing.T) {
	o := newOperator(t, `{mode: external, secret: certs, validity: 12s, authorityValidity: 24s}`)
	a := newAuthority(t, "an authority")
	whole := a.secret(t)
	without := maps.Clone(whole)
	delete(without, "ca.crt")
	o.write(without)
	o.eventually("the operator to say that no authority can be published", func(context.Context) error {
		if log := o.log(); !strings.Contains(log, certificate.ErrNoAuthority.Error()) {
			return errors.New(log)
		}
		return o.serves(a)
	})
	if _, err := o.registration(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("registered without an authority: %v", err)
	}

	// What an operator without the guard would register.
	attack := admission.Registration{Name: o.namespace + "-empty", URL: "https://" + o.address, Except: []string{o.namespace}, FailurePolicy: admissionregistrationv1.Ignore, TimeoutSeconds: 30}.Configuration(nil)
	if err := o.server.Create(t.Context(), attack); err != nil {
		t.Fatal(err)
	}
	o.eventually("a bad graph to pass webhooks that trust nobody", o.tryBad)
	if err := o.server.Delete(t.Context(), attack); err != nil {
		t.Fatal(err)
	}

	o.write(whole)
	o.eventually("bad objects to be refused", o.refuses)
	o.write(without)
	o.eventually("the operator to say so again", func(context.Context) error {
		if log := o.log(); strings.Count(log, certificate.ErrNoAuthority.Error()) < 2 {
			return errors.New(log)
		}
		return nil
	})
	registered, err := o.registration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range registered.Webhooks {
		if !bytes.Equal(w.ClientConfig.CABundle, a.bundle) {
			t.Errorf("%s trusts %q", w.Name, w.ClientConfig.CABundle)
		}
	}
	o.eventually("bad objects to be refused as before", o.refuses)
	o.onlyRead()
}

// TestACertificateWhoseAuthorityIsConfigured takes it from there where the Secret
// lacks it.
func TestACertificateWhoseAuthorityIsConfigured(t *testing.T) {
	a := newAuthority(t, "a configured authority")
	bundle, err := json.Marshal(string(a.bundle))
	if err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, fmt.Sprintf(`{mode: external, secret: certs, validity: 12s, authorityValidity: 24s, caBundle: %s}`, bundle))
	without := a.secret(t)
	delete(without, "ca.crt")
	o.write(without)
	o.eventually("bad objects to be refused", o.refuses)
}
