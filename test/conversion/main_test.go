// Package conversion has a real API server serve both versions, with our
// converter behind it, and published manifests go in by one and come out by the
// other.
package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/dynamo-operator/dynamo-operator/config/crd"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/admission"
)

// programsEnv names the folder of programs to start a server from.
const programsEnv = "PLAYGROUND_BIN"

// cluster is an API server whose definitions serve both versions.
type cluster struct {
	kubeconfig, program string
}

// start runs an API server, and a converter on loopback for as long as the test
// takes.
func start(t *testing.T) cluster {
	t.Helper()
	programs := os.Getenv(programsEnv)
	if programs == "" {
		t.Skipf("no API server to ask: set %s to the folder of built programs", programsEnv)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	log, err := os.Create(filepath.Join(t.TempDir(), "localcluster.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	up, err := localenv.Up(ctx, localenv.Options{BinDir: programs, Dir: filepath.Join(t.TempDir(), "cluster"), Nodes: 1, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := up.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c := cluster{up.Kubeconfig, filepath.Join(programs, "kubectl")}

	converter := httptest.NewTLSServer(admission.Converter{})
	t.Cleanup(converter.Close)
	c.must(t, definitions(t, converter.URL+admission.ConvertPath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: converter.Certificate().Raw})), "apply", "--server-side", "-f", "-")
	c.must(t, "", "wait", "--for=condition=Established", "--timeout=300s", "crd", "--all")
	return c
}

// definitions are ours with v1beta1 served by a converter.
func definitions(t *testing.T, url string, trusted []byte) string {
	t.Helper()
	objects, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var manifests strings.Builder
	for _, object := range objects {
		if len(object.Spec.Versions) > 1 {
			for i := range object.Spec.Versions {
				object.Spec.Versions[i].Served = true
			}
			object.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: trusted},
					ConversionReviewVersions: []string{"v1"},
				},
			}
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&manifests, "%s\n---\n", raw)
	}
	return manifests.String()
}

// kubectl runs the program that users run.
func (c cluster) kubectl(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), c.program, args...)
	cmd.Env = append(os.Environ(), localenv.Environment(c.kubeconfig)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return out.String(), errOut.String(), err
}

func (c cluster) must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, problem, err := c.kubectl(t, stdin, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, problem)
	}
	return out
}
