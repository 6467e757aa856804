package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestANodeFindsWhatItImported because a kubelet asks for the full name: containerd
// imports an archive under the name of the annotation, word for word.
func TestANodeFindsWhatItImported(t *testing.T) {
	t.Parallel()
	for _, asked := range []string{"dynamo-operator:v1", "team/dynamo-operator:v1", "localhost:5000/dynamo-operator:v1", "registry.example/a/b/dynamo-operator:v1"} {
		path, _ := archiveAt(t, asked, sample)
		var layout v1.IndexManifest
		if err := json.Unmarshal(untar(t, bytes.NewReader(read(t, path)))["index.json"], &layout); err != nil {
			t.Fatal(err)
		}
		if len(layout.Manifests) != 1 {
			t.Fatalf("%d entries, want one", len(layout.Manifests))
		}
		sought, err := reference.ParseDockerRef(asked) // what containerd makes of a pod's image
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"io.containerd.image.name": sought.String(), "org.opencontainers.image.ref.name": sought.String()}
		if diff := cmp.Diff(want, layout.Manifests[0].Annotations); diff != "" {
			t.Errorf("%s: %s", asked, diff)
		}
	}
	full, err := called("dynamo-operator:v1")
	if err != nil || full.String() != "docker.io/library/dynamo-operator:v1" {
		t.Errorf("%v, %v", full, err)
	}
	for _, bad := range []string{"Dynamo:v1", "dynamo-operator:v1+dirty", "dynamo-operator:"} {
		if _, err := called(bad); err == nil {
			t.Errorf("%s is a name", bad)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestOthersReadTheArchive with the library that crane is made of: as a layout with
// all platforms, and as what "docker load" takes, where a name has one.
func TestOthersReadTheArchive(t *testing.T) {
	t.Parallel()
	path, digest := archiveAt(t, "registry.example/team/program:v1", sample)
	dir := t.TempDir()
	index := open(t, path, dir)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if got, err := index.Digest(); err != nil || got.String() != digest {
		t.Errorf("%v, %v; want %s", got, err, digest)
	}
	if _, err := layout.FromPath(dir); err != nil {
		t.Error(err)
	}
	for tag, arch := range map[string]string{"registry.example/team/program:v1": "amd64", "registry.example/team/program:v1-arm64": "arm64"} {
		tagged, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(path, &tagged)
		if err != nil {
			t.Fatalf("%s: %v", tag, err)
		}
		if err := validate.Image(image); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
		if config, err := image.ConfigFile(); err != nil || config.Architecture != arch {
			t.Errorf("%s is for %v, %v", tag, config, err)
		}
	}
}

// TestLinksAreInTheLayer with folders before what they hold, as runtimes unpack.
func TestLinksAreInTheLayer(t *testing.T) {
	t.Parallel()
	plain, err := layer(sample, tomorrow.date)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range headers(t, plain) {
		line := string(h.Typeflag) + " " + h.Name
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		got = append(got, line)
	}
	want := []string{"5 etc/", "0 etc/passwd", "0 program", "5 tmp/", "5 usr/", "5 usr/bin/", "2 usr/bin/sh -> /program", "2 usr/sbin -> bin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
