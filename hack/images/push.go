package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the images of an archive to the registry that their name says, all
// platforms under that name, with the credentials that "docker login" keeps. It
// speaks plain HTTP to loopback, and to others if it is told to.
func push(ctx context.Context, archive, to string, plainHTTP bool) error {
	var options []name.Option
	if plainHTTP {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(to, options...)
	if err != nil {
		return fmt.Errorf("push %s: %w", archive, err)
	}
	dir, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder of ours, in the system's own
	index, err := open(archive, dir)
	if err != nil {
		return fmt.Errorf("push %s: %w", archive, err)
	}
	err = remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("push %s to %s: %w", archive, to, err)
	}
	return nil
}

// open unpacks an archive into a folder and returns what its one name stands for.
func open(archive, dir string) (v1.ImageIndex, error) {
	if err := unpack(archive, dir); err != nil {
		return nil, err
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	list, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(list.Manifests) != 1 {
		return nil, fmt.Errorf("%d images in one archive: want one", len(list.Manifests))
	}
	return top.ImageIndex(list.Manifests[0].Digest)
}

func unpack(archive, dir string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(dir) // nothing of an archive lands outside
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := root.MkdirAll(filepath.Dir(header.Name), 0o755); err != nil {
			return err
		}
		out, err := root.Create(header.Name)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, r); err != nil {
			return errors.Join(err, out.Close())
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
}
