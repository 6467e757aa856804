package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The annotations by which an entry of a layout says what it is called. containerd
// takes the first, others the second.
const (
	annotationName      = "io.containerd.image.name"
	annotationReference = "org.opencontainers.image.ref.name"
)

// called is the full name of an image, as a kubelet asks its runtime for it:
// "dynamo-operator:v1" is "docker.io/library/dynamo-operator:v1" there.
func called(name string) (reference.NamedTagged, error) {
	full, err := reference.ParseDockerRef(name)
	if err != nil {
		return nil, fmt.Errorf("name of an image %q: %w", name, err)
	}
	tagged, ok := full.(reference.NamedTagged)
	if !ok {
		return nil, fmt.Errorf("name of an image %q: want a tag", name)
	}
	return tagged, nil
}

// newIndex puts the images of all platforms under one digest.
func newIndex(images []v1.Image) (v1.ImageIndex, error) {
	var index v1.ImageIndex = empty.Index
	for _, one := range images {
		config, err := one.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	return index, nil
}

// writeArchive writes an index as an OCI layout in a tar file, under one name. Beside
// the layout the archive has the list that "docker load" of a Docker without
// containerd's store reads.
func writeArchive(to string, name reference.NamedTagged, index v1.ImageIndex, r release) error {
	dir, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder of ours, in the system's own
	files, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	called := map[string]string{annotationName: name.String(), annotationReference: name.String()}
	if err := files.AppendIndex(index, layout.WithAnnotations(called)); err != nil {
		return err
	}
	docker, err := dockerList(name, index)
	if err != nil {
		return err
	}
	if err := files.WriteFile("manifest.json", docker, 0o444); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		return writeFile(w, path, 0o444, data, r.date)
	})
	return errors.Join(err, w.Close(), out.Close())
}

// dockerList names the images for Docker, which knows one platform to a name: the
// first is what the name stands for, the others have their platform's behind it.
func dockerList(name reference.NamedTagged, index v1.ImageIndex) ([]byte, error) {
	platforms, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	blob := func(d v1.Descriptor) string { return path.Join("blobs", d.Digest.Algorithm, d.Digest.Hex) }
	var list tarball.Manifest
	for i, on := range platforms.Manifests {
		tag := name.Tag()
		if i > 0 {
			tag += "-" + on.Platform.Architecture
		}
		named, err := reference.WithTag(reference.TrimNamed(name), tag)
		if err != nil {
			return nil, fmt.Errorf("name of an image for %s: %w", on.Platform, err)
		}
		one, err := index.Image(on.Digest)
		if err != nil {
			return nil, err
		}
		m, err := one.Manifest()
		if err != nil {
			return nil, err
		}
		list = append(list, tarball.Descriptor{
			Config: blob(m.Config), RepoTags: []string{reference.FamiliarString(named)}, Layers: []string{blob(m.Layers[0])},
		})
	}
	return json.Marshal(list)
}
