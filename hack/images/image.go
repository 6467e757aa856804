package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
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

// newImage packs files into an image that starts program as a user without rights.
func newImage(program string, on v1.Platform, files []file, r release) (v1.Image, error) {
	plain, err := layer(files, r.date)
	if err != nil {
		return nil, err
	}
	packed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(plain)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	labels, created := labels(program, r), v1.Time{Time: r.date.UTC()}
	made, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		Created: created, Architecture: on.Architecture, OS: on.OS,
		Config: v1.Config{
			User: user + ":" + user, Entrypoint: []string{"/" + program}, Env: environment(program), WorkingDir: "/", Labels: labels,
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	made, err = mutate.Append(made, mutate.Addendum{Layer: packed, History: v1.History{Created: created, CreatedBy: "dynamo-operator images"}})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(made, labels).(v1.Image), nil
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
