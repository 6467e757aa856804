package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

var kedaFolder = flag.String("keda", "", "`folder` with KEDA's programs and manifests: have it scale adapters (make keda)")

// TestKEDAScalesAdapters runs KEDA itself, under its own account and roles: its operator
// takes a service to zero and back from it, and the HorizontalPodAutoscaler that it makes
// does the rest by the metrics that KEDA serves.
func TestKEDAScalesAdapters(t *testing.T) {
	if *kedaFolder == "" {
		t.Skip("runs KEDA, whose build takes a while; make keda runs it")
	}
	installed := newKEDA(t, shared)
	for _, version := range []string{v1alpha1.SchemeGroupVersion.String(), v1beta1.SchemeGroupVersion.String()} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dgd := w.restful("g")
			dgd.Spec.Services["decode"].ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
			w.create(dgd)
			w.ready("g")

			var waiting atomic.Int64
			waiting.Store(1)
			metrics := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(answer, `{"waiting": %d}`, waiting.Load())
			}))
			defer metrics.Close()
			w.create(w.scaledObject(version, metrics.URL))
			installed.release(t, w)

			for _, step := range []struct {
				what     string
				waiting  int64
				replicas int32
			}{
				{"as much as one replica takes changes nothing", 2, 1},
				{"more makes more", 5, 3},
				{"no more than are allowed", 50, 4},
				{"less makes fewer", 2, 1},
				{"nothing makes none", 0, 0},
				{"something makes one, and then as many as it takes", 3, 2},
			} {
				waiting.Store(step.waiting)
				w.Logf("%s: %d wait", step.what, step.waiting)
				w.scaled("g", "decode", step.replicas, 1)
			}
			hpa := &autoscalingv2.HorizontalPodAutoscaler{}
			if err := w.cluster.Client.Get(w.ctx, w.key("keda-hpa-decode"), hpa); err != nil {
				t.Fatal(err)
			}
			if hpa.Status.DesiredReplicas != 2 {
				t.Errorf("the autoscaler that KEDA made wants %d replicas, and there are 2", hpa.Status.DesiredReplicas)
			}
		})
	}
}

// scaledObject has KEDA scale the adapter of decode, a replica for every two that wait.
func (w world) scaledObject(version, url string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"namespace": w.namespace, "name": "decode"},
		"spec": map[string]any{
			"scaleTargetRef":  map[string]any{"apiVersion": version, "kind": v1alpha1.KindDynamoGraphDeploymentScalingAdapter, "name": "g-decode"},
			"minReplicaCount": int64(0), "maxReplicaCount": int64(4), "pollingInterval": int64(1), "cooldownPeriod": int64(5),
			"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{
				"behavior": map[string]any{"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(0)}},
			}},
			"triggers": []any{map[string]any{
				"type":     "metrics-api",
				"metadata": map[string]any{"url": url, "valueLocation": "waiting", "targetValue": "2"},
			}},
		},
	}}
}

// keda is an installation of KEDA: its manifests, and its programs as processes of the test.
type keda struct {
	cluster   *localenv.Cluster
	dir       string
	authority []byte // its certificate
}

const kedaNamespace = "keda"

// kedaMetrics is where its metrics server is asked for, by the API server.
const kedaMetrics = "keda-metrics-apiserver"

func newKEDA(t *testing.T, cluster *localenv.Cluster) *keda {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	k := &keda{cluster: cluster, dir: t.TempDir()}
	if err := errors.Join(k.install(ctx), k.certificates()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := k.account(ctx)
	if err != nil {
		t.Fatal(err)
	}
	paper, loopback, err := k.address(ctx)
	if err != nil {
		t.Fatal(err)
	}
	grpc := net.JoinHostPort(loopback.String(), "9666")
	k.run(t, "operator", kubeconfig,
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--metrics-service-bind-address="+grpc,
		"--cert-dir="+k.dir, "--enable-webhook-patching=false", "--enable-apiservice-patching=false", "--kubeconfig="+kubeconfig)
	k.run(t, "adapter", kubeconfig,
		"--port=0", "--bind-address="+loopback.String(), "--secure-port=6443", "--metrics-service-address="+grpc,
		"--cert-dir="+k.dir, "--client-ca-file="+k.file("ca.crt"), "--tls-cert-file="+k.file("tls.crt"), "--tls-private-key-file="+k.file("tls.key"),
		"--lister-kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
	if err := k.serve(ctx, paper); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *keda) file(name string) string { return filepath.Join(k.dir, name) }

// install applies KEDA's definitions and roles as they are.
func (k *keda) install(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kedaNamespace}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kedaNamespace, Name: "keda-operator"}}
	for _, object := range []client.Object{namespace, account} {
		if err := k.cluster.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(*kedaFolder, "manifests", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%d manifests of KEDA in %s: %w", len(files), *kedaFolder, err)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		objects, err := k.cluster.Decode(file, "")
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := k.cluster.Apply(ctx, objects); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// account is a kubeconfig of KEDA's account, which has the rights of its roles and no others.
func (k *keda) account(ctx context.Context) (kubeconfig string, err error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: kedaNamespace, Name: "keda-operator"}}
	token := &authenticationv1.TokenRequest{}
	if err := k.cluster.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: k.cluster.Config.Host, CertificateAuthority: k.cluster.Config.CAFile, CertificateAuthorityData: k.cluster.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	kubeconfig = k.file("kubeconfig")
	return kubeconfig, clientcmd.WriteToFile(*config, kubeconfig)
}

// address is one that no pod gets, on paper and where it is listened on.
func (k *keda) address(ctx context.Context) (paper, loopback netip.Addr, err error) {
	service := &corev1.Service{}
	if err := k.cluster.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "kubernetes"}, service); err != nil {
		return paper, loopback, err
	}
	ip, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return paper, loopback, err
	}
	of := ip.As4()[1]
	return netip.AddrFrom4([4]byte{10, of, 191, 200}), netip.AddrFrom4([4]byte{127, of, 191, 200}), nil
}

// run runs one of its programs until the test ends, and shows what it said if that fails.
func (k *keda) run(t *testing.T, program, kubeconfig string, args ...string) {
	t.Helper()
	log, err := os.Create(k.file(program + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(filepath.Join(*kedaFolder, program), args...)
	process.Stdout, process.Stderr = log, log
	process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "WATCH_NAMESPACE=", "POD_NAMESPACE="+kedaNamespace, "KEDA_CLUSTER_OBJECT_NAMESPACE="+kedaNamespace)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = process.Wait()                          // how does not matter any more
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("KEDA's %s said:\n%s", program, text[max(0, len(text)-8192):])
		}
	})
}

// serve has the API server ask the metrics server, as its manifests would, but for a pod.
func (k *keda) serve(ctx context.Context, paper netip.Addr) error {
	port, name, protocol := int32(6443), "https", corev1.ProtocolTCP
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: kedaNamespace, Name: kedaMetrics}}
	service.Spec.Ports = []corev1.ServicePort{{Name: name, Port: 443, Protocol: protocol}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: kedaNamespace, Name: kedaMetrics, Labels: map[string]string{discoveryv1.LabelServiceName: kedaMetrics}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{paper.String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1.external.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"service":  map[string]any{"namespace": kedaNamespace, "name": kedaMetrics},
			"caBundle": base64.StdEncoding.EncodeToString(k.authority),
		},
	}}
	for _, object := range []client.Object{service, slice, api} {
		if err := k.cluster.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return k.cluster.Eventually(ctx, "KEDA's metrics to be served", func(ctx context.Context) error {
		if err := k.cluster.Client.Get(ctx, client.ObjectKeyFromObject(api), api); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(api.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Available" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", conditions)
	})
}

// release deletes the object of a world before KEDA ends, which has a finalizer on it.
func (k *keda) release(t *testing.T, w world) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		object := w.scaledObject("", "")
		err := k.cluster.Client.Delete(ctx, object)
		err = errors.Join(err, k.cluster.Eventually(ctx, "KEDA to let go of its object", func(ctx context.Context) error {
			err := k.cluster.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			if err == nil {
				return errors.New("it is still there")
			}
			return client.IgnoreNotFound(err)
		}))
		if err != nil {
			t.Error(err)
		}
	})
}

// certificates writes what KEDA finds in its Secret: its operator and its metrics server
// prove to each other who they are with one certificate.
func (k *keda) certificates() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	_, loopback, err := k.address(context.Background())
	if err != nil {
		return err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "keda"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return err
	}
	k.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "keda-operator"}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{strings.Join([]string{kedaMetrics, kedaNamespace, "svc"}, ".")}, IPAddresses: []net.IP{net.IP(loopback.AsSlice())},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if der, err = x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, key); err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(k.file("ca.crt"), k.authority, 0o600),
		os.WriteFile(k.file("tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(k.file("tls.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600),
	)
}
