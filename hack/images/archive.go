package main

import (
	"archive/tar"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
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

// writeArchive writes images of several platforms as one OCI layout in a tar
// file, under one name, and returns the digest that the name stands for. Beside
// the layout the archive has the list that "docker load" of a Docker without
// containerd's store reads.
func writeArchive(to string, name reference.NamedTagged, images []image, r release) (string, error) {
	var manifests []descriptor
	blobs := map[string]blob{}
	for _, one := range images {
		d := one.manifest.descriptor()
		d.Platform = &ociPlatform{Architecture: one.on.arch, OS: one.on.os}
		manifests = append(manifests, d)
		for _, b := range []blob{one.config, one.layer, one.manifest} {
			blobs[b.digest()] = b
		}
	}
	index, err := document(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests})
	if err != nil {
		return "", err
	}
	blobs[index.digest()] = index
	entry := index.descriptor()
	entry.Annotations = map[string]string{annotationName: name.String(), annotationReference: name.String()}
	layout, err := document(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{entry}})
	if err != nil {
		return "", err
	}
	docker, err := dockerList(name, images)
	if err != nil {
		return "", err
	}

	out, err := os.Create(to)
	if err != nil {
		return "", err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	files := []file{
		{path: "oci-layout", data: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{path: "index.json", data: layout.data},
		{path: "manifest.json", data: docker.data},
	}
	for _, b := range blobs {
		files = append(files, file{path: b.path(), data: b.data})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	for _, f := range files {
		if err := writeFile(w, f.path, 0o444, f.data, r.date); err != nil {
			return "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return index.digest(), out.Close()
}

// path is where a layout has a blob.
func (b blob) path() string {
	return path.Join("blobs/sha256", strings.TrimPrefix(b.digest(), "sha256:"))
}

// dockerList names the images for Docker, whose own store has one platform under
// a name: the first has the name itself, the others have it with their
// architecture.
func dockerList(name reference.NamedTagged, images []image) (blob, error) {
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	var list []entry
	for i, one := range images {
		tag := name.Tag()
		if i > 0 {
			tag += "-" + one.on.arch
		}
		named, err := reference.WithTag(reference.TrimNamed(name), tag)
		if err != nil {
			return blob{}, fmt.Errorf("name of an image for %s: %w", one.on, err)
		}
		list = append(list, entry{
			Config: one.config.path(), RepoTags: []string{reference.FamiliarString(named)}, Layers: []string{one.layer.path()},
		})
	}
	return document("", list)
}
