package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// way is how an operator is installed, and where it is then.
type way struct {
	tool, scope string
	// home is the operator's namespace, target one that it looks after.
	home, target string
	// deployment, metrics and token name its Deployment, its Service for metrics, and for
	// an operator of one namespace the Secret with the token of scrapers.
	deployment, metrics, token string
	// reader is the ClusterRole of scrapers, where the cluster says who they are.
	reader string
	// install brings it, or its next version; uninstall takes it away.
	install   func(ctx context.Context, version string) error
	uninstall func(ctx context.Context) error
}

// tools run the programs that install.
type tools struct {
	*localenv.Cluster
	programs, helm, folder string
}

func newTools(t *testing.T, cluster *localenv.Cluster, programs string) tools {
	t.Helper()
	built, err := exec.CommandContext(t.Context(), "../../hack/tool.sh", "helm").Output()
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	return tools{cluster, programs, strings.TrimSpace(string(built)), t.TempDir()}
}

func (s tools) run(ctx context.Context, stdin, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(append(os.Environ(), localenv.Environment(s.Kubeconfig)...), "HELM_CACHE_HOME="+s.folder, "HELM_CONFIG_HOME="+s.folder, "HELM_DATA_HOME="+s.folder)
	command.Stdin = strings.NewReader(stdin)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, &said)
	}
	return nil
}

const (
	wholeCluster = "cluster"
	oneNamespace = "namespace"
)

// ways are all combinations. Those for one namespace do not meet; those for the cluster
// come one after the other.
func (s tools) ways() []way {
	return []way{
		s.byHelm(oneNamespace), s.byKustomize(oneNamespace), s.byProgram(oneNamespace),
		s.byHelm(wholeCluster), s.byKustomize(wholeCluster), s.byProgram(wholeCluster),
	}
}

func (s tools) byHelm(scope string) way {
	w := way{tool: "Helm", scope: scope, home: "helm-" + scope, target: "helm-" + scope + "-graphs", metrics: "dynamo-dynamo-operator"}
	w.deployment, w.reader = w.metrics+"-controller-manager", w.metrics+"-metrics-reader"
	values := ""
	if scope == oneNamespace {
		w.reader, w.token = "", w.metrics+"-metrics-token"
		values = "dynamo-operator: {namespaceRestriction: {enabled: true, targetNamespace: " + w.target + "}, webhook: {enabled: false}}"
	}
	w.install = func(ctx context.Context, version string) error {
		return s.run(ctx, values, s.helm, "upgrade", "--install", "dynamo", "../../charts/platform", "--namespace", w.home, "--create-namespace", "--values", "-",
			"--wait", "--timeout", "5m", "--set", "dynamo-operator.controllerManager.manager.image.tag="+version, "--set", "dynamo-operator.dynamo.profiler.image=dynamo-profiler:dev")
	}
	w.uninstall = func(ctx context.Context) error {
		return s.run(ctx, "", s.helm, "uninstall", "dynamo", "--namespace", w.home, "--wait", "--timeout", "5m")
	}
	return w
}

func (s tools) byKustomize(scope string) way {
	w := way{tool: "Kustomize", scope: scope, home: installation.Namespace, target: "kustomize-graphs", deployment: installation.Deployment, metrics: "dynamo-operator", reader: "dynamo-operator-metrics-reader"}
	overlay, rest := "default", "operator"
	if scope == oneNamespace {
		overlay, rest, w.target, w.token, w.reader = "namespaced", "namespaced", "dynamo-graphs", installation.MetricsToken, ""
	}
	kubectl := filepath.Join(s.programs, "kubectl")
	w.install = func(ctx context.Context, version string) error {
		text, err := s.Kubectl(ctx, nil, "kustomize", "../../config/"+overlay)
		if err != nil {
			return err
		}
		text = strings.ReplaceAll(text, "dynamo-operator:dev", "dynamo-operator:"+version)
		if err := s.run(ctx, text, kubectl, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
			return err
		}
		if err := s.makeToken(ctx, w); err != nil {
			return err
		}
		return s.run(ctx, "", kubectl, "rollout", "status", "--namespace", w.home, "deployment/"+w.deployment, "--timeout", "5m")
	}
	w.uninstall = func(ctx context.Context) error {
		for _, args := range [][]string{
			{"apply", "--server-side", "-k", "../../config/uninstall"},
			{"wait", "--namespace", w.home, "--for=condition=Complete", "job/dynamo-operator-uninstall", "--timeout=5m"},
			{"delete", "-k", "../../config/" + rest, "--wait", "--timeout=5m"},
		} {
			if err := s.run(ctx, "", kubectl, args...); err != nil {
				return err
			}
		}
		return nil
	}
	return w
}

// makeToken makes the Secret that config/namespaced leaves to whoever installs it.
func (s tools) makeToken(ctx context.Context, w way) error {
	if w.token == "" {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.home, Name: w.token}, StringData: map[string]string{"token": "a-token-of-the-test"}}
	return client.IgnoreAlreadyExists(s.Client.Create(ctx, secret))
}

func (s tools) byProgram(scope string) way {
	w := way{tool: "CLI", scope: scope, home: installation.Namespace, target: "cli-graphs", deployment: installation.Deployment, metrics: "dynamo-operator", reader: "dynamo-operator-metrics-reader"}
	var place []string
	if scope == oneNamespace {
		w.home, w.target, w.token, w.reader = "cli-operator", "cli-one-graphs", installation.MetricsToken, ""
		place = []string{"--restrict-to", w.target, "--operator-namespace", w.home}
	}
	plugin := filepath.Join(s.programs, "kubectl-dynamo")
	w.install = func(ctx context.Context, version string) error {
		return s.run(ctx, "", plugin, append([]string{"install", "--image", "dynamo-operator:" + version}, place...)...)
	}
	w.uninstall = func(ctx context.Context) error {
		return s.run(ctx, "", plugin, append([]string{"uninstall"}, place...)...)
	}
	return w
}
