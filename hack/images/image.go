package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"time"
)

// Media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// file is one file of an image.
type file struct {
	path       string
	data       []byte
	executable bool
}

func (f file) mode() fs.FileMode {
	if f.executable {
		return 0o555
	}
	return 0o444
}

// blob is content by its digest.
type blob struct {
	media string
	data  []byte
}

func (b blob) digest() string {
	sum := sha256.Sum256(b.data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// descriptor is how OCI documents point at a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *ociPlatform      `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type ociPlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

func (b blob) descriptor() descriptor {
	return descriptor{MediaType: b.media, Digest: b.digest(), Size: len(b.data)}
}

// image is one platform's manifest with what it points at.
type image struct {
	on       platform
	manifest blob
	blobs    []blob
}

// newImage packs files into an image that starts program as a user without rights.
func newImage(program string, on platform, files []file, r release) (image, error) {
	plain, err := layer(files, r.date)
	if err != nil {
		return image{}, err
	}
	packed, err := compress(plain)
	if err != nil {
		return image{}, err
	}
	labels := labels(program, r)
	config, err := document(typeConfig, map[string]any{
		"created":      r.date.UTC().Format(time.RFC3339),
		"architecture": on.arch,
		"os":           on.os,
		"config": map[string]any{
			"User":       user + ":" + user,
			"Entrypoint": []string{"/" + program},
			"Env":        []string{"PATH=/"},
			"WorkingDir": "/",
			"Labels":     labels,
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{blob{data: plain}.digest()}},
		"history": []map[string]any{{"created": r.date.UTC().Format(time.RFC3339), "created_by": "dynamo-operator images"}},
	})
	if err != nil {
		return image{}, err
	}
	content := blob{media: typeLayer, data: packed}
	manifest, err := document(typeManifest, map[string]any{
		"schemaVersion": 2,
		"mediaType":     typeManifest,
		"config":        config.descriptor(),
		"layers":        []descriptor{content.descriptor()},
		"annotations":   labels,
	})
	if err != nil {
		return image{}, err
	}
	return image{on: on, manifest: manifest, blobs: []blob{config, content, manifest}}, nil
}

func labels(program string, r release) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    program,
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  r.date.UTC().Format(time.RFC3339),
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/dynamo-operator/dynamo-operator",
	}
}

func document(media string, content any) (blob, error) {
	text, err := json.Marshal(content) // the keys of maps are sorted
	return blob{media: media, data: text}, err
}

// layer is a tar archive of files whose bytes depend on nothing but the files
// and the time.
func layer(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR}); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := writeFile(w, f.path, int64(f.mode()), f.data, at); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func writeFile(w *tar.Writer, name string, mode int64, data []byte, at time.Time) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: at, Format: tar.FormatUSTAR}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

func compress(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, bytes.NewReader(plain)); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
