package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func headers(t *testing.T, plain []byte) []tar.Header {
	t.Helper()
	var all []tar.Header
	for r := tar.NewReader(bytes.NewReader(plain)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *h)
	}
}

// open unpacks an archive into a folder and returns what its one name stands for.
func open(t *testing.T, archive, dir string) v1.ImageIndex {
	t.Helper()
	for name, data := range untar(t, bytes.NewReader(read(t, archive))) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 {
		t.Fatalf("%d images in one archive: want one", len(list.Manifests))
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// onLoopback starts a registry and returns its host.
func onLoopback(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestEveryPlatformIsPushedAndHoldsItsOwnProgram goes the whole way with a small
// program: built for two platforms, packed, pushed, pulled from a registry as a node
// of each platform does, and looked into.
func TestEveryPlatformIsPushedAndHoldsItsOwnProgram(t *testing.T) {
	t.Parallel()
	host, out := onLoopback(t), t.TempDir()
	p, err := parse([]string{"--out", out, "--programs", "hello", "--registry", host + "/team", "--version", "v1", "--push"})
	if err != nil {
		t.Fatal(err)
	}
	p.from = "testdata"
	var printed bytes.Buffer
	if err := p.write(t.Context(), "hello", &printed); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(printed.String(), "pushed "+host+"/team/hello:v1@sha256:") {
		t.Errorf("printed %s", printed.String())
	}
	pushed, err := name.ParseReference(host + "/team/hello:v1")
	if err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		image, err := remote.Image(pushed, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != arch {
			t.Errorf("a node of %s gets an image for %v, %v", arch, config, err)
		}
		if got := machine(t, image, "hello"); got != want {
			t.Errorf("the image for %s holds a program for %s", arch, got)
		}
	}
}

// machine is what a program of an image is built for.
func machine(t *testing.T, image v1.Image, program string) elf.Machine {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	binary, err := elf.NewFile(bytes.NewReader(untar(t, plain)[program]))
	if err != nil {
		t.Fatal(err)
	}
	return binary.Machine
}

// TestNoImageForAnotherPlatform because a Dockerfile that passed the wrong one gave
// arm64 images with programs for amd64.
func TestNoImageForAnotherPlatform(t *testing.T) {
	t.Parallel()
	binary, err := build("hello", "testdata", arm, "-s -w", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(binary, amd); err == nil || !strings.Contains(err.Error(), "EM_AARCH64") {
		t.Errorf("%v", err)
	}
}

// TestTheArchivesThatMakeWrote looks into dist/images, if make images left any.
func TestTheArchivesThatMakeWrote(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join(root, "dist", "images", "*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("no archives in dist/images: make images writes them")
	}
	for _, path := range found {
		program := strings.TrimSuffix(filepath.Base(path), ".tar")
		index := open(t, path, t.TempDir())
		list, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		machines := map[string]elf.Machine{}
		for _, d := range list.Manifests {
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			machines[d.Platform.Architecture] = machine(t, image, program)
		}
		if diff := cmp.Diff(map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}, machines); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestAPushSaysWhereItFailed(t *testing.T) {
	t.Parallel()
	if _, err := parse([]string{"--push"}); err == nil {
		t.Error("pushed to nowhere")
	}
	index := indexOf(t, sample)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := push(ctx, index, onLoopback(t)+"/program:v1", false); err == nil || !strings.Contains(err.Error(), "program:v1") {
		t.Errorf("%v", err)
	}
	if err := push(t.Context(), index, "localhost/Program:v1", false); err == nil || !strings.Contains(err.Error(), "Program") {
		t.Errorf("%v", err)
	}
}
