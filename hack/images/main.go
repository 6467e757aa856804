// Command images writes each of our programs as an OCI image archive, for every
// platform, without a Docker daemon: one static binary, no shell, not root.
// The same sources give the same bytes.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// plan is what is asked for on the command line.
type plan struct {
	programs  []string
	platforms []platform
	out       string
	unpack    bool
	release   release
	ldflags   string
}

// shipped are the programs that run in clusters.
var shipped = []string{"dynamo-operator", "dynamo-mocker", "dynamo-profiler"}

// release is what an image says about where it comes from.
type release struct {
	version, commit string
	date            time.Time
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	for _, program := range p.programs {
		if err := p.write(program, out); err != nil {
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
	version := flags.String("version", "dev", "version label and tag")
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
		release:  release{version: *version, commit: *commit, date: day},
		ldflags:  *ldflags,
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
	return p, nil
}

// write builds one program for every platform and prints what its image holds.
func (p plan) write(program string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder of ours, in the system's own
	var images []image
	for _, on := range p.platforms {
		binary, err := build(program, on, p.ldflags, dir)
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
			fmt.Fprintf(out, "  %04o %10d /%s\n", f.mode(), len(f.data), f.path)
		}
	}
	path := filepath.Join(p.out, program+".tar")
	digest, err := writeArchive(path, program+":"+p.release.version, images, p.release)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s\n", digest, path)
	return nil
}
