package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var (
	amd      = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm      = v1.Platform{OS: "linux", Architecture: "arm64"}
	tomorrow = release{version: "v1", commit: "abc", date: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	sample   = []file{
		{path: "etc/passwd", data: []byte("nonroot")}, {path: "program", data: []byte("code"), executable: true},
		{path: "tmp", scratch: true}, {path: "usr/bin/sh", link: "/program"}, {path: "usr/sbin", link: "bin"},
	}
)

// indexOf is a sample image for two platforms.
func indexOf(t *testing.T, files []file) v1.ImageIndex {
	t.Helper()
	var images []v1.Image
	for _, on := range []v1.Platform{amd, arm} {
		one, err := newImage("program", on, files, tomorrow)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, one)
	}
	index, err := newIndex(images)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// archiveAt writes an archive of sample images and returns its path.
func archiveAt(t *testing.T, name string, files []file) (path, digest string) {
	t.Helper()
	index := indexOf(t, files)
	full, err := called(name)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "program.tar")
	if err := writeArchive(path, full, index, tomorrow); err != nil {
		t.Fatal(err)
	}
	sum, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return path, sum.String()
}

func archive(t *testing.T, files []file) (string, []byte) {
	t.Helper()
	path, digest := archiveAt(t, "program:v1", files)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return digest, text
}

// TestAPlatformIsWhole because a builder that does not say TARGETARCH would have
// half of one.
func TestAPlatformIsWhole(t *testing.T) {
	for _, text := range []string{"linux/", "/arm64", "linux", ""} {
		if _, err := parsePlatform(text); err == nil {
			t.Errorf("%q is a platform", text)
		}
	}
}

func TestSameFilesGiveTheSameBytes(t *testing.T) {
	first, one := archive(t, sample)
	second, two := archive(t, sample)
	if first != second || !bytes.Equal(one, two) {
		t.Errorf("two runs differ: %s and %s", first, second)
	}
	changed, _ := archive(t, []file{{path: "program", data: []byte("other"), executable: true}})
	if changed == first {
		t.Error("another program has the same digest")
	}
}

// TestArchiveIsAnOCILayout follows every reference from the index to the files.
func TestArchiveIsAnOCILayout(t *testing.T) {
	_, text := archive(t, sample)
	blobs := map[string][]byte{}
	for name, data := range untar(t, bytes.NewReader(text)) {
		blobs[strings.Replace(name, "blobs/sha256/", "sha256:", 1)] = data
	}
	digest := func(data []byte) v1.Hash {
		t.Helper()
		sum, _, err := v1.SHA256(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	read := func(d v1.Descriptor, into any) {
		t.Helper()
		data, found := blobs[d.Digest.String()]
		if !found || int64(len(data)) != d.Size || digest(data) != d.Digest {
			t.Fatalf("%s %s is absent or not what it is called", d.MediaType, d.Digest)
		}
		if into != nil {
			if err := json.Unmarshal(data, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	var top, index v1.IndexManifest
	if err := json.Unmarshal(blobs["index.json"], &top); err != nil {
		t.Fatal(err)
	}
	read(top.Manifests[0], &index)
	var platforms []string
	for _, d := range index.Manifests {
		platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
		var manifest v1.Manifest
		read(d, &manifest)
		var config v1.ConfigFile
		read(manifest.Config, &config)
		if config.Config.User != "65532:65532" || !cmp.Equal(config.Config.Entrypoint, []string{"/program"}) {
			t.Errorf("runs %v as %q", config.Config.Entrypoint, config.Config.User)
		}
		if got := config.Config.Labels["org.opencontainers.image.revision"]; got != "abc" {
			t.Errorf("revision label %q", got)
		}
		read(manifest.Layers[0], nil)
		unpacked, err := gzip.NewReader(bytes.NewReader(blobs[manifest.Layers[0].Digest.String()]))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if got := digest(plain); got != config.RootFS.DiffIDs[0] {
			t.Errorf("the layer is %s, its config says %s", got, config.RootFS.DiffIDs[0])
		}
		if got := string(untar(t, bytes.NewReader(plain))["program"]); got != "code" {
			t.Errorf("the program is %q", got)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Error(diff)
	}
}

func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBillOfMaterialsNamesEveryModule(t *testing.T) {
	text, err := billOfMaterials("program", &debug.BuildInfo{
		GoVersion: "go1.26",
		Deps:      []*debug.Module{{Path: "example.com/a", Version: "v1.0.0"}, {Path: "example.com/b", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}}},
	}, tomorrow)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Packages []struct{ Name, VersionInfo string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range bill.Packages {
		names = append(names, p.Name+" "+p.VersionInfo)
	}
	if diff := cmp.Diff([]string{"program v1", "stdlib go1.26", "example.com/a v1.0.0", "example.com/c v2.0.0"}, names); diff != "" {
		t.Error(diff)
	}
}
