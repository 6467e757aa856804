package admission

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/config/crd"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// definitions is the folder of the CustomResourceDefinitions; tests run in the
// folder of their package.
const definitions = "../../config/crd"

// apiServer is a real one that serves this checkout's definitions.
type apiServer struct {
	client.Client
	kubeconfig string
	program    string
}

// needServer skips a test if there is no server to ask.
func needServer(t *testing.T) *apiServer {
	t.Helper()
	if server == nil {
		t.Skipf("no API server to ask: set %s to the kubeconfig of one, or %s to the folder of built programs", kubeconfigEnv, programsEnv)
	}
	return server
}

// connect installs the definitions the way a user would, by kubectl apply, which
// also shows that they fit its size limit.
func connect(ctx context.Context, kubeconfig, kubectl string) (*apiServer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// The tests are many small requests in a row; the server is theirs alone.
	config.QPS = -1

	s := &apiServer{kubeconfig: kubeconfig, program: kubectl}
	if _, stderr, err := s.kubectl(ctx, "", "apply", "-k", definitions); err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr)
	}
	objects, err := crd.Objects()
	if err != nil {
		return nil, err
	}
	wait := []string{"wait", "--for=condition=Established", "--timeout=300s"}
	for _, object := range objects {
		wait = append(wait, "crd/"+object.Name)
	}
	if _, stderr, err := s.kubectl(ctx, "", wait...); err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr)
	}

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, autoscalingv1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	if s.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	return s, nil
}

// kubectl runs the program that users run, so that what it makes of a manifest
// is part of what is tested.
func (s *apiServer) kubectl(ctx context.Context, stdin string, args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env = append(os.Environ(), localenv.Environment(s.kubeconfig)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return out.String(), errOut.String(), err
}

// What kubectl knows of a server is of this one: kept by host and port alone, it may be of
// another that had the port an hour ago, and served other versions.
func TestKubectlAsksThisServerWhatItServes(t *testing.T) {
	server := needServer(t)
	if _, stderr, err := server.kubectl(t.Context(), "", "get", "dgd", "--all-namespaces"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	kept, err := filepath.Glob(filepath.Join(filepath.Dir(server.kubeconfig), "cache", "discovery", "*", "nvidia.com"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("what was discovered is not beside %s: %v, error %v", server.kubeconfig, kept, err)
	}
}

// namespace makes an empty namespace. It stays: without a controller manager
// nothing would finish its deletion.
func (s *apiServer) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "admission-"}}
	if err := s.Create(t.Context(), ns); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	return ns.Name
}
