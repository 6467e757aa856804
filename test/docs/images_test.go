package docs

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

var (
	pulled   = regexp.MustCompile(`(?m)^\s*(?:- )?image: "?([^"\s]+)"?\s*$`)
	exported = regexp.MustCompile(`(?m)^export REGISTRY=.*\n`)
)

// TestTheInstallGuideNamesWhatItPushed runs every "helm install" of the guide that
// names images against a registry that holds what "make push" puts there: each image
// of the rendered chart has to be found.
func TestTheInstallGuideNamesWhatItPushed(t *testing.T) {
	t.Parallel()
	helm, err := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "tool.sh"), "helm").Output()
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	where, tag := strings.TrimPrefix(server.URL, "http://")+"/team", "v9"
	holds := func(image string) error {
		reference, err := name.ParseReference(image)
		if err != nil {
			return err
		}
		_, err = remote.Head(reference, remote.WithContext(t.Context()))
		return err
	}
	for _, program := range version.Programs() {
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		reference, err := name.ParseReference(version.Join(where, program, tag))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(reference, image, remote.WithContext(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if err := holds(version.Join(where, version.Operator, "dev")); err == nil {
		t.Error("the registry holds what nobody pushed")
	}
	tried := 0
	for _, b := range blocks(pages(t)["docs/guide/install.md"]) {
		at := strings.Index(b.text, "helm install dynamo charts/platform")
		if at < 0 || b.mark != notToRun {
			continue
		}
		if exported.MatchString(b.text) && strings.Index(b.text, "make push") > at {
			t.Errorf("line %d installs before it pushes", b.line)
		}
		command := strings.NewReplacer("helm install", strings.TrimSpace(string(helm))+" template", "--wait", "--kube-version 1.34", "--create-namespace", "").Replace(b.text[at:])
		session := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
		session.Dir, session.Env = root, append(os.Environ(), "REGISTRY="+where, "VERSION="+tag)
		text, err := session.CombinedOutput()
		if err != nil {
			t.Errorf("line %d: %v\n%s", b.line, err, text)
			continue
		}
		tried++
		var images []string
		for _, match := range pulled.FindAllStringSubmatch(string(text), -1) {
			images = append(images, match[1])
			if err := holds(match[1]); err != nil {
				t.Errorf("line %d: %v", b.line, err)
			}
		}
		for _, program := range []string{version.Operator, version.Profiler} {
			if want := version.Join(where, program, tag); !slices.Contains(images, want) {
				t.Errorf("line %d: %s is not among %v", b.line, want, images)
			}
		}
	}
	if tried < 4 {
		t.Errorf("%d commands install with images: want those for any cluster, EKS, GKE and AKS", tried)
	}
}

// TestMakeHandsOnRegistryAndVersion to everything that names images.
func TestMakeHandsOnRegistryAndVersion(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string][]string{
		"push":   {"./hack/images", "--registry 'registry.example/team'", "--version 'v9'", "version.version=v9", "version.registry=registry.example/team", "--push"},
		"images": {"--registry 'registry.example/team'", "--version 'v9'"},
		"deploy": {"install --image registry.example/team/dynamo-operator:v9"},
	} {
		command := exec.CommandContext(t.Context(), "make", "-C", root, "--dry-run", verb, "REGISTRY=registry.example/team", "VERSION=v9")
		text, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("make %s: no %s in\n%s", verb, part, text)
			}
		}
	}
}
