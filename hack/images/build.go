package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// platform is an operating system and an architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func parsePlatform(text string) (platform, error) {
	system, arch, found := strings.Cut(text, "/")
	if !found || system == "" || arch == "" {
		return platform{}, fmt.Errorf("platform %q: want os/arch", text)
	}
	return platform{os: system, arch: arch}, nil
}

// build compiles a program and returns the path of the binary. Nothing of the
// machine it is built on gets into it.
func build(program string, on platform, ldflags, dir string) (string, error) {
	binary := filepath.Join(dir, on.arch, program)
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", binary, "./cmd/"+program)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+on.os, "GOARCH="+on.arch, "GOFLAGS=", "GOAMD64=v1")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("build for %s: %w", on, err)
	}
	return binary, nil
}

// user runs every program; the number of its group is the same.
const user = "65532"

// contents are the files of an image: the program, a name for its user, and the
// list of what the program is made of.
func contents(program, binary string, r release) ([]file, error) {
	code, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read what %s is built of: %w", program, err)
	}
	bill, err := billOfMaterials(program, info, r)
	if err != nil {
		return nil, err
	}
	return []file{
		{path: "etc/group", data: []byte("nonroot:x:" + user + ":\n")},
		{path: "etc/passwd", data: []byte("nonroot:x:" + user + ":" + user + ":nonroot:/:/none\n")},
		{path: program, data: code, executable: true},
		{path: "sbom.spdx.json", data: bill},
	}, nil
}

// writeFiles lays the files of an image out below a folder.
func writeFiles(to string, files []file) error {
	for _, f := range files {
		path := filepath.Join(to, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, f.mode()); err != nil {
			return err
		}
	}
	return nil
}
