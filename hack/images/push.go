package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the images of all platforms to the registry that their name says, with
// the credentials that "docker login" keeps. It speaks plain HTTP to loopback, and to
// others if it is told to.
func push(ctx context.Context, index v1.ImageIndex, to string, plainHTTP bool) error {
	var options []name.Option
	if plainHTTP {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(to, options...)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push to %s: %w", to, err)
	}
	return nil
}
