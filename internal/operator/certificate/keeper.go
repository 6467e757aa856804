// Package certificate keeps the certificate of the operator's servers: an authority
// of our own and what it signs, in one Secret that all replicas share, renewed
// long before it ends. A Secret that somebody else keeps is only read. Nothing
// is written to files, and a new certificate is served without a restart.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// Keeper keeps one Secret and serves what it holds.
type Keeper struct {
	// Direct reads and writes past the informers: this Secret is in none.
	Direct interface {
		client.Reader
		client.Writer
	}
	Secret types.NamespacedName
	// Names are those by which the server is called.
	Names []string
	Life  Life
	// External leaves the Secret to somebody else.
	External bool
	// Authorities are trusted where an external Secret has no ca.crt.
	Authorities []byte
	Clock       clock.WithTicker
	// Publish is told the authorities to trust, after each look at the Secret.
	Publish func(ctx context.Context, trusted []byte) error
	// Failed is told whether the last look at the Secret failed; nobody is if nil.
	Failed func(failed bool)

	current atomic.Pointer[tls.Certificate]
}

// Certificate is for tls.Config: the newest that there is.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.current.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// Held reports whether there is a certificate to serve.
func (k *Keeper) Held() bool { return k.current.Load() != nil }

// NeedLeaderElection is false: every replica serves.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start looks at the Secret until ctx ends. Errors are retried, and logged when
// they change: what is served goes on being served meanwhile.
func (k *Keeper) Start(ctx context.Context) error {
	logged := ""
	for {
		wait := k.interval()
		err := k.Look(ctx)
		if k.Failed != nil {
			k.Failed(err != nil)
		}
		if err != nil && ctx.Err() == nil {
			wait = min(wait, time.Second)
			if err.Error() != logged {
				log.FromContext(ctx).Error(err, "certificate refresh failed, retrying", "secret", k.Secret)
			}
			logged = err.Error()
		} else {
			logged = ""
		}
		select {
		case <-k.Clock.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// interval is short against the shortest time in which anything has to happen.
func (k *Keeper) interval() time.Duration {
	return max(time.Second, min(time.Minute, k.Life.Serving/12, k.Life.Authority/24))
}

// Look reads the Secret, renews what is due, serves it and has it trusted.
func (k *Keeper) Look(ctx context.Context) error {
	secret, err := k.read(ctx)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(secret.Data[servingCert], secret.Data[servingKey])
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	// Trust comes first: a certificate is not served to those who cannot know it.
	if k.Publish != nil {
		err = k.publish(ctx, secret.Data[trustedCerts])
	}
	k.current.Store(&pair)
	return err
}

// ErrNoAuthority says that nobody could verify the certificate.
var ErrNoAuthority = errors.New("no certificate authority to publish: put ca.crt into the Secret, or set certificate.caBundle")

// EmptyBundle keeps a webhook from being registered, or left, with nothing that
// its certificate can be verified by: an API server then fails each call, and
// with failurePolicy Ignore admits everything.
const EmptyBundle guard.Guard = "empty-bundle"

// publish has authorities trusted. Without any it leaves what is published as it
// is: an old authority may still verify, none never does.
func (k *Keeper) publish(ctx context.Context, trusted []byte) error {
	if len(decodeCertificates(trusted)) == 0 {
		trusted = k.Authorities
	}
	if len(decodeCertificates(trusted)) == 0 && !EmptyBundle.Off() {
		return fmt.Errorf("read Secret %s: %w", k.Secret, ErrNoAuthority)
	}
	return k.Publish(ctx, trusted)
}

// read is the Secret as it should be, after writing it if it was not. Two
// replicas may try at once; one of them reads what the other wrote.
func (k *Keeper) read(ctx context.Context) (*corev1.Secret, error) {
	for range 5 {
		secret, err := k.try(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return secret, err
		}
	}
	return nil, fmt.Errorf("write Secret %s: others keep writing it", k.Secret)
}

func (k *Keeper) try(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.Direct.Get(ctx, k.Secret, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && (!missing || k.External) {
		return nil, fmt.Errorf("read Secret %s: %w", k.Secret, err)
	}
	if k.External {
		return secret, nil
	}
	turned, err := readRing(secret.Data).turn(k.Names, k.Clock.Now(), k.Life)
	if err != nil {
		return nil, err
	}
	data, err := turned.write()
	if err != nil || maps.EqualFunc(data, secret.Data, bytes.Equal) {
		return secret, err
	}
	secret.Data = data
	if missing {
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: k.Secret.Namespace, Name: k.Secret.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "dynamo-operator"}}
		secret.Type = corev1.SecretTypeTLS
		return secret, k.Direct.Create(ctx, secret)
	}
	return secret, k.Direct.Update(ctx, secret)
}
