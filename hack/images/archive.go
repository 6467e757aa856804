package main

import (
	"archive/tar"
	"os"
	"path"
	"slices"
	"strings"
)

// writeArchive writes images of several platforms as one OCI layout in a tar
// file, under one name, and returns the digest that the name stands for.
func writeArchive(to, name string, images []image, r release) (string, error) {
	var manifests []descriptor
	blobs := map[string]blob{}
	for _, one := range images {
		d := one.manifest.descriptor()
		d.Platform = &ociPlatform{Architecture: one.on.arch, OS: one.on.os}
		manifests = append(manifests, d)
		for _, b := range one.blobs {
			blobs[b.digest()] = b
		}
	}
	index, err := document(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests})
	if err != nil {
		return "", err
	}
	blobs[index.digest()] = index
	entry := index.descriptor()
	entry.Annotations = map[string]string{"org.opencontainers.image.ref.name": name}
	layout, err := document(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{entry}})
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
	}
	for digest, b := range blobs {
		files = append(files, file{path: path.Join("blobs/sha256", strings.TrimPrefix(digest, "sha256:")), data: b.data})
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
