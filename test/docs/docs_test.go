// Package docs runs the commands of the guides. A block marked sh is run, on a
// cluster with the operator in it, in a namespace of the guide's own; a block
// with another mark, or none, is for reading.
package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/internal/playground"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// root of the repository: commands in the guides are meant to be typed there.
const root = "../.."

func TestCommandsOfTheGuidesWork(t *testing.T) {
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		t.Skip("PLAYGROUND_BIN is not set: no programs to run a cluster from (make test sets it)")
	}
	cluster := start(t, programs)
	pages, err := filepath.Glob(root + "/docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var ran, guides atomic.Int32
	t.Cleanup(func() {
		summary.Line(t, "docs: %d command blocks of %d guides ran", ran.Load(), guides.Load())
	})
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := commands(string(text))
		if len(blocks) == 0 {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guides.Add(1)
			environment := settle(t, cluster, programs, name)
			for _, block := range blocks {
				ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
				command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", block)
				command.Dir, command.Env = root, environment
				output, err := command.CombinedOutput()
				cancel()
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, block, output)
				}
				ran.Add(1)
			}
		})
	}
}

// commands are the blocks of a page that are marked as commands to run.
func commands(page string) []string {
	var blocks []string
	var block []string
	inside := false
	for line := range strings.Lines(page) {
		switch mark := strings.TrimSpace(line); {
		case !inside && mark == "```sh":
			inside, block = true, nil
		case inside && mark == "```":
			inside = false
			blocks = append(blocks, strings.Join(block, ""))
		case inside:
			block = append(block, line)
		}
	}
	return blocks
}

func TestOnlyMarkedBlocksAreCommands(t *testing.T) {
	got := commands("a\n```\nno\n```\n```sh\nyes\nand yes\n```\n```console\nno\n```\n")
	if len(got) != 1 || got[0] != "yes\nand yes\n" {
		t.Errorf("%q", got)
	}
}

func start(t *testing.T, programs string) *playground.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "localcluster.log"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := playground.Up(ctx, playground.Options{
		BinDir: programs, Dir: filepath.Join(dir, "cluster"), Nodes: 4, GPUsPerNode: 8, Log: log, Args: []string{"--with", "lws"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, install := range []func(context.Context) error{cluster.InstallAPI, cluster.InstallOperator} {
		if err := install(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return cluster
}

// settle gives a guide a namespace, and the environment of somebody who works
// in it.
func settle(t *testing.T, cluster *playground.Cluster, programs, guide string) []string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "guide-" + guide}}
	if err := cluster.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace.Name
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "KUBECONFIG="+kubeconfig, "NAMESPACE="+namespace.Name, fmt.Sprintf("PATH=%s:%s", programs, os.Getenv("PATH")))
}
