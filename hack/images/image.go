package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"
)

// Media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// file is one file of an image, or a link to another, or a folder.
type file struct {
	path       string
	data       []byte
	executable bool
	link       string // what a symbolic link leads to
	scratch    bool   // a folder in which everybody may write, such as /tmp
}

func (f file) mode() fs.FileMode {
	switch {
	case f.link != "":
		return 0o777 // has no say
	case f.scratch:
		return 0o1777
	case f.executable:
		return 0o555
	default:
		return 0o444
	}
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
	config   blob
	layer    blob
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
			"Env":        environment(program),
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
	return image{on: on, manifest: manifest, config: config, layer: content}, nil
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
// and the time. Every folder stands before what it holds.
func layer(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	var folder func(string) error
	folder = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR})
	}
	for _, f := range files {
		err := folder(path.Dir(f.path))
		switch {
		case err != nil:
		case f.link != "":
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: f.path, Linkname: f.link, Mode: int64(f.mode()), ModTime: at, Format: tar.FormatUSTAR})
		case f.scratch:
			made[f.path] = true
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: f.path + "/", Mode: int64(f.mode()), ModTime: at, Format: tar.FormatUSTAR})
		default:
			err = writeFile(w, f.path, int64(f.mode()), f.data, at)
		}
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", f.path, err)
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
