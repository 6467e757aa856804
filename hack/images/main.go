// Command images writes each of our programs as an OCI image archive, for every
// platform, and pushes them to a registry, without a Docker daemon: one static
// binary, no shell, not root. The same sources give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// plan is what is asked for on the command line.
type plan struct {
	programs  []string
	platforms []v1.Platform
	out       string
	unpack    bool
	registry  string
	push      bool
	plainHTTP bool
	from      string // the folder of the programs
	release   release
	ldflags   string
}

// shipped are the programs that run in clusters.
var shipped = version.Programs()

// release is what an image says about where it comes from.
type release struct {
	version, commit string
	date            time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	for _, program := range p.programs {
		if err := p.write(ctx, program, out); err != nil {
			return fmt.Errorf("image of %s: %w", program, err)
		}
	}
	return nil
}

func parse(args []string) (plan, error) {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	programs := flags.String("programs", strings.Join(shipped, ","), "programs below cmd/, by comma")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms, by comma")
	out := flags.String("out", "dist/images", "folder for the archives")
	unpack := flags.Bool("unpack", false, "write the files of one program for one platform instead, for others to pack")
	registry := flags.String("registry", "", "registry and path before the names of the images")
	push := flags.Bool("push", false, "send the images to the registry, too")
	plainHTTP := flags.Bool("plain-http", false, "speak plain HTTP to a registry that is not on loopback")
	tag := flags.String("version", "dev", "version label and tag")
	commit := flags.String("commit", "unknown", "revision label")
	date := flags.String("date", "1970-01-01", "day of the commit, the time of everything in the image")
	ldflags := flags.String("ldflags", "", "flags of the linker")
	if err := flags.Parse(args); err != nil {
		return plan{}, err
	}
	day, err := time.Parse(time.DateOnly, *date)
	if err != nil {
		return plan{}, fmt.Errorf("date %q: %w", *date, err)
	}
	p := plan{
		programs: strings.Split(*programs, ","),
		out:      *out,
		unpack:   *unpack,
		registry: *registry, push: *push, plainHTTP: *plainHTTP,
		from:    "cmd",
		release: release{version: *tag, commit: *commit, date: day},
		ldflags: *ldflags,
	}
	for text := range strings.SplitSeq(*platforms, ",") {
		one, err := parsePlatform(text)
		if err != nil {
			return plan{}, err
		}
		p.platforms = append(p.platforms, one)
	}
	if p.unpack && (len(p.programs) != 1 || len(p.platforms) != 1) {
		return plan{}, fmt.Errorf("unpack %d programs for %d platforms: want one of each", len(p.programs), len(p.platforms))
	}
	if p.push && p.registry == "" {
		return plan{}, errors.New("push: to which registry? (--registry, or make push REGISTRY=...)")
	}
	return p, nil
}

// write builds one program for every platform and prints what its image holds.
func (p plan) write(ctx context.Context, program string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder of ours, in the system's own
	var images []v1.Image
	for _, on := range p.platforms {
		binary, err := build(program, p.from, on, p.ldflags, dir)
		if err != nil {
			return err
		}
		files, err := contents(program, binary, p.release)
		if err != nil {
			return err
		}
		if p.unpack {
			return writeFiles(p.out, files)
		}
		one, err := newImage(program, on, files, p.release)
		if err != nil {
			return err
		}
		images = append(images, one)
		fmt.Fprintf(out, "%s %s\n", program, on)
		for _, f := range files {
			if f.link == "" {
				fmt.Fprintf(out, "  %04o %10d /%s\n", f.mode(), len(f.data), f.path)
			}
		}
	}
	name, err := called(version.Join(p.registry, program, p.release.version))
	if err != nil {
		return err
	}
	index, err := newIndex(images)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	path := filepath.Join(p.out, program+".tar")
	if err := writeArchive(path, name, index, p.release); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s %s\n", digest, path, name)
	if !p.push {
		return nil
	}
	if err := push(ctx, index, name.String(), p.plainHTTP); err != nil {
		return err
	}
	fmt.Fprintf(out, "pushed %s@%s\n", name, digest)
	return nil
}
