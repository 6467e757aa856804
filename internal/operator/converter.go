package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/admission"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/apiversion"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/certificate"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// ConverterOptions are those of a converter that stands alone.
type ConverterOptions struct {
	Address, HealthAddress string
	// CertificateFolder holds tls.crt and tls.key.
	CertificateFolder string
	// Drain is how long requests are taken after the end was announced.
	Drain time.Duration
}

// Convert converts, for clusters whose operators may not be asked by the whole
// cluster. It reads its certificate from files and talks to no API server, so it
// needs no right. It returns when ctx ends and the last request is answered.
func Convert(ctx context.Context, o ConverterOptions) error {
	if o.CertificateFolder == "" {
		return errors.New("convert: --certificate-folder is required")
	}
	watcher, err := certwatcher.New(filepath.Join(o.CertificateFolder, corev1.TLSCertKey), filepath.Join(o.CertificateFolder, corev1.TLSPrivateKeyKey))
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	server := &admission.Server{
		Address: o.Address, Certificate: watcher.GetCertificate, ConversionOnly: true,
		Drain: o.Drain, AnswerTimeout: config.AnswerTimeout, Clock: clock.RealClock{},
	}
	health, err := probes(ctx, o.HealthAddress, server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := watcher.Start(ctx); err != nil {
			cancel(fmt.Errorf("follow certificate: %w", err))
		}
	}()
	err = server.Start(ctx)
	server.Wait()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return errors.Join(err, health.Close())
}

// probes serve /healthz and /readyz of a converter.
func probes(ctx context.Context, address string, server *admission.Server) (*http.Server, error) {
	mux := http.NewServeMux()
	mux.Handle("/healthz", healthz.CheckHandler{Checker: healthz.Ping})
	mux.Handle("/readyz", healthz.CheckHandler{Checker: func(*http.Request) error {
		if server.Listening() == nil {
			return errors.New("conversion is not served yet")
		}
		return ctx.Err()
	}})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	health := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := health.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.FromContext(ctx).Error(err, "serve probes")
		}
	}()
	return health, nil
}

// PublishOptions say which converter is published.
type PublishOptions struct {
	// Namespace of the Service and of the Secret.
	Namespace, Service, Secret string
	// External leaves the Secret to somebody else.
	External bool
	// InjectFrom is a Certificate of cert-manager, namespace/name.
	InjectFrom string
	Life       config.Certificate
	Timeout    time.Duration
}

// PublishConverter makes or renews the certificate of a converter, leads the
// definitions to it, and has v1beta1 served once a conversion worked. It does so
// with the rights of whoever installs; the converter has none.
func PublishConverter(ctx context.Context, o PublishOptions, cluster *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	direct, err := client.New(cluster, client.Options{Scheme: scheme.New()})
	if err != nil {
		return err
	}
	service := types.NamespacedName{Namespace: o.Namespace, Name: o.Service}
	name := o.Service + "." + o.Namespace + ".svc"
	publisher := &apiversion.Publisher{
		Direct: direct, Serve: true, Namespace: o.Namespace, Timing: apiversion.DefaultTiming, Clock: clock.RealClock{},
		Converter: definition.Converter{Service: service, Path: admission.ConvertPath, InjectFrom: o.InjectFrom},
		Reachable: func(ctx context.Context) (bool, error) { return admission.Behind(ctx, direct, service, "") },
	}
	keeper := &certificate.Keeper{
		Direct: direct, Secret: types.NamespacedName{Namespace: o.Namespace, Name: o.Secret},
		Names: []string{name, name + "." + o.Life.ClusterDomain}, External: o.External || o.InjectFrom != "",
		Life:    certificate.Life{Serving: o.Life.Validity.Duration, Authority: o.Life.AuthorityValidity.Duration},
		Clock:   clock.RealClock{},
		Publish: func(_ context.Context, trusted []byte) error { publisher.Trust(trusted); return nil },
	}
	last := errors.New("not tried")
	err = wait.PollUntilContextCancel(ctx, publisher.Timing.Retry, true, func(ctx context.Context) (bool, error) {
		if last = keeper.Look(ctx); last == nil {
			last = publisher.Publish(ctx)
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("publish converter %s: %w", service, last)
	}
	return nil
}
