package install

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation/overlay"
)

// place is which operator a verb is about.
type place struct {
	// home is the operator's own namespace.
	home string
	// target is the one namespace that it looks after; empty: all of them.
	target string
	// converter is installed beside an operator for one namespace, which may not
	// convert.
	converter bool
}

func (p *place) add(flags *pflag.FlagSet) {
	flags.StringVar(&p.target, "restrict-to", "", "one `namespace` that the operator looks after, with rights in it alone; it has to be there")
	flags.StringVar(&p.home, "operator-namespace", installation.Namespace, "`namespace` of the operator; with --restrict-to")
	flags.BoolVar(&p.converter, "converter", false, "also the converter by which v1beta1 is served; with --restrict-to, once for a cluster")
}

func (p place) validate() error {
	if p.target == "" && p.home != installation.Namespace {
		return fmt.Errorf("--operator-namespace: an operator for all namespaces is in %s", installation.Namespace)
	}
	if p.target == "" && p.converter {
		return errors.New("--converter: an operator for all namespaces converts by itself")
	}
	return nil
}

func (p place) objects() ([]*unstructured.Unstructured, error) {
	if p.target == "" {
		return installation.Operator()
	}
	return overlay.Namespaced(p.home, p.target)
}

// namespaces are those that the operator looks after; none means all.
func (p place) namespaces() []string {
	if p.target == "" {
		return nil
	}
	return []string{p.target}
}

// alone returns an error if another operator is in the way.
func (p place) alone(ctx context.Context, i installation.Installer) error {
	if err := p.same(ctx, i.Client); err != nil {
		return err
	}
	if p.target == "" {
		return i.Alone(ctx)
	}
	if err := i.Client.Get(ctx, types.NamespacedName{Name: p.target}, &corev1.Namespace{}); err != nil {
		return fmt.Errorf("--restrict-to: %w", err)
	}
	return nil
}

// same returns an error if the operator's namespace has one that looks after something
// else: it would be replaced, and what it looked after would be nobody's.
func (p place) same(ctx context.Context, c client.Reader) error {
	m := &corev1.ConfigMap{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: p.home, Name: installation.Configuration}, m); err != nil {
		return client.IgnoreNotFound(err)
	}
	namespaces, err := installation.Namespaces(m)
	if err != nil {
		return err
	}
	if found, want := strings.Join(namespaces, ", "), strings.Join(p.namespaces(), ", "); found != want {
		return fmt.Errorf("namespace %s has an operator for %s; uninstall that one first, or choose another --operator-namespace", p.home, orAll(found))
	}
	return nil
}

func orAll(namespaces string) string {
	if namespaces == "" {
		return "all namespaces"
	}
	return "namespace " + namespaces
}

// metricsToken makes the token by which scrapers read the metrics of an operator that may
// not ask the API server who they are. One that is there stays.
func (p place) metricsToken(ctx context.Context, c client.Client) error {
	if p.target == "" {
		return nil
	}
	token := make([]byte, 32)
	if _, err := rand.Read(token); err != nil {
		return errors.Join(errors.New("make a token"), err)
	}
	secret := &corev1.Secret{ObjectMeta: p.tokenMeta(), StringData: map[string]string{"token": hex.EncodeToString(token)}}
	secret.Labels = map[string]string{"app.kubernetes.io/name": "dynamo-operator"}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, secret)); err != nil {
		return fmt.Errorf("make Secret %s: %w", secret.Name, err)
	}
	return nil
}

func (p place) tokenMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.home, Name: installation.MetricsToken}
}
