// Package docs holds the documents against what they are about: commands of the
// guides are run, links followed, verbs looked up.
//
// A block marked sh is run, block after block in one shell, as a reader would
// type them. A block marked console is not, and a comment above it says why.
// Comments above a block steer the test:
//
//	<!-- first: COMMAND -->   what the reader is taken to have done before
//	<!-- fails -->            the command is meant to be refused
//	<!-- patient -->          the command may fail on a busy machine, and is tried again
//	<!-- prints -->           (above a text block) what the commands before it print; ... is anything
package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// Guides that are not read in a cluster with an operator: these begin with
// nothing at all, and those with a cluster alone. Each of the two kinds is run page
// after page.
var (
	fromNothing = []string{"quickstart", "local-cluster"}
	fromCluster = []string{"install", "upgrade-and-rollback", "migrate-from-the-original"}
)

func TestCommandsOfTheGuidesWork(t *testing.T) {
	programs := os.Getenv("PLAYGROUND_BIN")
	if programs == "" {
		t.Skip("PLAYGROUND_BIN is not set: no programs to run a cluster from (make test sets it)")
	}
	programs, err := filepath.Abs(programs)
	if err != nil {
		t.Fatal(err)
	}
	helm, err := exec.CommandContext(t.Context(), "../../hack/tool.sh", "helm").Output()
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	world := world{programs: programs, helm: filepath.Dir(string(helm))}
	guides := map[string][]block{}
	var excused, ran atomic.Int32
	var reasons []string
	for name, page := range pages(t) {
		for _, b := range blocks(page) {
			guide, is := strings.CutPrefix(strings.TrimSuffix(name, ".md"), "docs/guide/")
			if b.mark == notToRun {
				excused.Add(1)
				why, _ := b.comment("not run")
				reasons = append(reasons, fmt.Sprintf("%s:%d is not run: %s", name, b.line, why))
			} else if is {
				guides[guide] = append(guides[guide], b)
			}
		}
	}
	slices.Sort(reasons)
	t.Log(strings.Join(reasons, "\n"))
	t.Cleanup(func() {
		summary.Line(t, "docs: %d command blocks of %d guides ran, %d are not run and say why", ran.Load(), len(guides), excused.Load())
	})

	t.Run("from nothing", func(t *testing.T) {
		t.Parallel()
		for _, name := range fromNothing {
			t.Run(name, func(t *testing.T) {
				ran.Add(world.read(t, guides[name], nil))
			})
		}
	})
	t.Run("from a cluster", func(t *testing.T) {
		t.Parallel()
		cluster := world.cluster(t)
		for _, name := range fromCluster {
			t.Run(name, func(t *testing.T) {
				ran.Add(world.read(t, guides[name], cluster))
			})
		}
	})
	t.Run("with an operator", func(t *testing.T) {
		t.Parallel()
		cluster := world.cluster(t, "--with", "lws,volcano")
		if err := errors.Join(cluster.InstallAPI(t.Context()), cluster.InstallOperatorWith(t.Context(), "rollout: {generations: true}")); err != nil {
			t.Fatal(err)
		}
		for name, page := range guides {
			if slices.Contains(slices.Concat(fromNothing, fromCluster), name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ran.Add(world.read(t, page, cluster))
			})
		}
	})
}

// world is what a reader has on the machine.
type world struct{ programs, helm string }

// read does what a page says in a folder that looks like the repository, so that
// nothing is left in it, and in a namespace of the page's own. It returns how
// many blocks of commands there were.
func (w world) read(t *testing.T, page []block, cluster *localenv.Cluster) int32 {
	t.Helper()
	desk, record := t.TempDir(), t.TempDir()
	w.lay(t, desk)
	var commands []block
	printed := map[int]block{}
	for _, b := range page {
		if b.mark == toRun {
			commands = append(commands, b)
		} else if _, compare := b.comment("prints"); compare {
			printed[len(commands)-1] = b
		}
	}
	if len(commands) == 0 {
		return 0
	}
	environment := append(os.Environ(), "PATH="+strings.Join([]string{w.programs, w.helm, os.Getenv("PATH")}, ":"), "NAMESPACE=default",
		"HELM_CACHE_HOME="+record, "HELM_CONFIG_HOME="+record, "HELM_DATA_HOME="+record, "RECORD="+record)
	if cluster != nil {
		environment = append(environment, settle(t, cluster)...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	session := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script(commands))
	session.Dir, session.Env, session.WaitDelay = desk, environment, time.Minute
	t.Cleanup(func() { // a page that fails half-way leaves its cluster running
		if _, err := os.Stat(filepath.Join(desk, ".localcluster")); err == nil {
			_ = exec.Command(filepath.Join(w.programs, "localcluster"), "down", "--delete", "--dir", filepath.Join(desk, ".localcluster")).Run()
		}
	})
	err := session.Run()
	for i, b := range commands {
		text, missing := os.ReadFile(filepath.Join(record, strconv.Itoa(i)))
		if missing != nil {
			break
		}
		if _, later := os.Stat(filepath.Join(record, strconv.Itoa(i+1))); err != nil && later != nil {
			t.Fatalf("line %d: %v\n%s\n%s", b.line, err, b.text, text)
		}
		if want, compare := printed[i]; compare && !pattern(want.text).Match(text) {
			t.Errorf("line %d: the page says\n%s\nit is\n%s", want.line, want.text, text)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return int32(len(commands))
}

// script is a page's commands for one shell. What each block prints goes to a
// file of its number.
func script(commands []block) string {
	var text strings.Builder
	text.WriteString("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for i, b := range commands {
		fmt.Fprintf(&text, "exec >$RECORD/%d 2>&1\n", i)
		if first, found := b.comment("first"); found {
			text.WriteString(first + "\n" + fmt.Sprintf("exec >$RECORD/%d 2>&1\n", i))
		}
		_, refused := b.comment("fails")
		_, again := b.comment("patient")
		switch {
		case refused:
			fmt.Fprintf(&text, "if\n%sthen echo 'this was meant to be refused'; exit 1; fi\n", b.text)
		case again:
			fmt.Fprintf(&text, "until\n%sdo sleep 1; done\n", b.text)
		default:
			text.WriteString(b.text)
		}
	}
	return text.String()
}

// pattern is a text of a page as something to match: lines that are three dots
// stand for any number of lines, and three dots within a line for any words.
func pattern(text string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(strings.TrimSpace(text))
	quoted = regexp.MustCompile(`(?m)^\\\.\\\.\\\.$`).ReplaceAllString(quoted, `(?s:.*)`)
	quoted = strings.ReplaceAll(quoted, `\.\.\.`, `.*`)
	return regexp.MustCompile(`^\s*` + quoted + `\s*$`)
}

func TestThreeDotsAreAnything(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"a b\nc\nd\ne\n": true, "a b\ne": false, "a x\nc\ne": true, "z b\nc\ne": false} {
		if got := pattern("a ...\n...\ne").MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// lay puts what a page may name into a folder: what is in the repository, and the
// programs as make build leaves them.
func (w world) lay(t *testing.T, desk string) {
	t.Helper()
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"charts", "config", "docs", "examples"} {
		if err := os.Symlink(filepath.Join(checkout, name), filepath.Join(desk, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(w.programs, filepath.Join(desk, "bin")); err != nil {
		t.Fatal(err)
	}
}

// cluster starts a cluster that ends with the test.
func (w world) cluster(t *testing.T, args ...string) *localenv.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "localcluster.log"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := localenv.Up(ctx, localenv.Options{BinDir: w.programs, Dir: filepath.Join(dir, "cluster"), Nodes: 4, GPUsPerNode: 8, Log: log, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// settle gives a page a namespace, and the environment of somebody who works in it.
func settle(t *testing.T, cluster *localenv.Cluster) []string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "guide-" + filepath.Base(t.Name())}}
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
	return append(localenv.Environment(kubeconfig), "NAMESPACE="+namespace.Name)
}
