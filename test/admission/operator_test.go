package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operator is a process of ours that serves webhooks on loopback.
type operator struct {
	*testing.T
	server                     *apiServer
	namespace, address, output string
}

func newOperator(t *testing.T, certificate string) operator {
	t.Helper()
	server := needServer(t)
	programs := os.Getenv(programsEnv)
	if programs == "" {
		t.Skipf("no operator to run: set %s to the folder of built programs", programsEnv)
	}
	folder := t.TempDir()
	o := operator{T: t, server: server, namespace: server.namespace(t), address: freeAddress(t), output: filepath.Join(folder, "log")}
	config := filepath.Join(folder, "config.yaml")
	// It looks after its own namespace alone: other tests left graphs behind.
	text := fmt.Sprintf(`{apiVersion: dynamo-operator/v1alpha1, kind: OperatorConfiguration, namespaces: [%s],
server: {metricsAddress: "", healthAddress: ""}, leaderElection: {enabled: false}, tenancy: {claim: false},
webhook: {enabled: true, address: %q, url: "https://%s", namespace: %s, configuration: %s, timeoutSeconds: 30, drain: 0s}, certificate: %s}`,
		o.namespace, o.address, o.address, o.namespace, o.namespace, certificate)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(o.output)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(programs, "dynamo-operator"), "--config", config)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+server.kubeconfig, "POD_NAME=only")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.stop(cmd) })
	return o
}

// freeAddress is on a port that no outgoing connection takes meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for port := 20000; port < 30000; port++ {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// stop ends the operator, which takes its registration along, and waits until
// the API server has forgotten it.
func (o operator) stop(cmd *exec.Cmd) {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		o.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		o.Errorf("the operator: %v\n%s", err, o.log())
	}
	o.logsJSON()
	if _, err := o.registration(context.Background()); !apierrors.IsNotFound(err) {
		o.Errorf("the last replica has left its registration: %v", err)
		o.server.Delete(context.Background(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}})
	}
	o.eventually("nobody to be asked any more", o.tryBad)
}

func (o operator) log() string {
	text, err := os.ReadFile(o.output)
	if err != nil {
		o.Fatal(err)
	}
	return string(text)
}

// logsJSON checks what an operator has written from its start to its end: lines
// of JSON, of which none holds a value that could not be written.
func (o operator) logsJSON() {
	for line := range strings.Lines(o.log()) {
		if !json.Valid([]byte(line)) || strings.Contains(line, "!ERROR") {
			o.Errorf("logged: %s", line)
		}
	}
	if log := o.log(); !strings.Contains(log, "Starting EventSource") {
		o.Errorf("no controller has started:\n%s", log)
	}
}

// eventually waits for as long as a busy machine may take; also in a cleanup,
// when the test's own context has ended.
func (o operator) eventually(what string, try func(context.Context) error) {
	o.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			o.Fatalf("wait for %s: %v\n%s", what, err, o.log())
		}
	}
}

func (o operator) registration(ctx context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	registered := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	return registered, o.server.Get(ctx, types.NamespacedName{Name: o.namespace}, registered)
}

// tryBad offers a graph that only a webhook refuses, in a namespace that the
// operator is asked about, as somebody whom it is asked about: neither its own
// namespace nor what it writes itself is.
func (o operator) tryBad(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.server.kubeconfig)
	if err != nil {
		return err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"system:masters"}}
	somebody, err := client.New(config, client.Options{Scheme: o.server.Scheme(), Mapper: o.server.RESTMapper()})
	if err != nil {
		return err
	}
	return somebody.Create(ctx, object(o.T, "default", graph, `{services: {a_b: {}}}`), client.DryRunAll)
}

func (o operator) refuses(ctx context.Context) error {
	switch err := o.tryBad(ctx); {
	case err == nil:
		return errors.New("a bad graph is taken")
	case !strings.Contains(err.Error(), "spec.services[a_b]"):
		return fmt.Errorf("a bad graph is not refused by us: %w", err)
	}
	return nil
}

// write puts a Secret where the operator looks for it.
func (o operator) write(data map[string][]byte) {
	o.Helper()
	o.eventually("the Secret to be written", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		err := o.server.Get(ctx, types.NamespacedName{Namespace: o.namespace, Name: "certs"}, secret)
		if apierrors.IsNotFound(err) {
			secret.ObjectMeta = metav1.ObjectMeta{Namespace: o.namespace, Name: "certs"}
			secret.Data = data
			return o.server.Create(ctx, secret, client.FieldOwner("keeper"))
		}
		if err != nil {
			return err
		}
		secret.Data = data
		return o.server.Update(ctx, secret, client.FieldOwner("keeper"))
	})
}

// onlyRead checks that the operator did not write the Secret.
func (o operator) onlyRead() {
	o.Helper()
	secret := &corev1.Secret{}
	if err := o.server.Get(o.Context(), types.NamespacedName{Namespace: o.namespace, Name: "certs"}, secret); err != nil {
		o.Fatal(err)
	}
	for _, entry := range secret.ManagedFields {
		if entry.Manager != "keeper" {
			o.Errorf("%s wrote the Secret", entry.Manager)
		}
	}
}

// inject does what cert-manager's injector does where it is asked to.
func (o operator) inject(ctx context.Context, a authority) error {
	registered, err := o.registration(ctx)
	if err != nil {
		return err
	}
	if from := registered.Annotations["cert-manager.io/inject-ca-from"]; from != "certs/serving" {
		o.Errorf("the authority is asked of %q", from)
	}
	for i := range registered.Webhooks {
		registered.Webhooks[i].ClientConfig.CABundle = a.bundle
	}
	return o.server.Update(ctx, registered, client.FieldOwner("cainjector"))
}

// leaf is the certificate that is served now; nil if there is none.
func (o operator) leaf() *x509.Certificate {
	conn, err := tls.Dial("tcp", o.address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // whose it is, is what is asked
	if err != nil {
		return nil
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

func (o operator) serves(a authority) error {
	leaf := o.leaf()
	if leaf == nil {
		return errors.New("nothing is served")
	}
	return leaf.CheckSignatureFrom(a.certificate)
}
