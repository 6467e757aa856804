package main

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
)

func parsePlatform(text string) (v1.Platform, error) {
	on, err := v1.ParsePlatform(text)
	if err != nil || on.OS == "" || on.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("platform %q: want os/arch", text)
	}
	return *on, nil
}

// build compiles a program and returns the path of the binary. Nothing of the
// machine it is built on gets into it.
func build(program, from string, on v1.Platform, ldflags, dir string) (string, error) {
	binary := filepath.Join(dir, on.Architecture, program)
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", binary, "./"+from+"/"+program)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+on.OS, "GOARCH="+on.Architecture, "GOFLAGS=", "GOAMD64=v1")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("build for %s: %w", on, err)
	}
	return binary, verify(binary, on)
}

// user runs every program; the number of its group is the same.
const user = "65532"

// verify makes sure that a binary is one for a platform, so that no image is
// written for another than it says.
func verify(binary string, on v1.Platform) error {
	f, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want, known := machines[on.Architecture]; !known || f.Machine != want {
		return fmt.Errorf("%s is built for %s, the image is for %s", filepath.Base(binary), f.Machine, on)
	}
	return nil
}

// environment is what a program finds in its image. The mock engine's has a path
// like that of a distribution, because the commands of containers are looked up
// there, and a home that can be written.
func environment(program string) []string {
	if program == version.Mocker {
		return []string{
			"PATH=/usr/local/bin:/usr/bin:/bin",
			"HOME=/tmp",
			"DYNAMO_CONTAINER_IMAGE=" + program,
		}
	}
	if program == version.Planner {
		return []string{"PATH=/usr/bin:/bin"}
	}
	return []string{"PATH=/"}
}

// links let a program be started by other names. The mock engine is what a
// container's command finds in its image, whichever of the usual folders the
// command says; nothing else is there.
func links(program string) []file {
	switch program {
	case version.Planner:
		// What starts the original's planner starts ours.
		files := []file{{path: "bin", link: "usr/bin"}}
		for _, name := range config.Commands() {
			files = append(files, file{path: "usr/bin/" + name, link: "/" + program})
		}
		return files
	case version.Mocker:
	default:
		return nil
	}
	files := []file{
		{path: "bin", link: "usr/bin"},
		{path: "sbin", link: "usr/bin"},
		{path: "tmp", scratch: true},
		{path: "usr/local/bin", link: "../bin"},
		{path: "usr/local/sbin", link: "../bin"},
		{path: "usr/sbin", link: "bin"},
	}
	for _, name := range launch.Commands() {
		files = append(files, file{path: "usr/bin/" + name, link: "/" + program})
	}
	return files
}

// contents are the files of an image: the program, a name for its user, the list
// of what the program is made of, and other names of it.
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
	return append([]file{
		{path: "etc/group", data: []byte("nonroot:x:" + user + ":\n")},
		{path: "etc/passwd", data: []byte("nonroot:x:" + user + ":" + user + ":nonroot:/:/none\n")},
		{path: program, data: code, executable: true},
		{path: "sbom.spdx.json", data: bill},
	}, links(program)...), nil
}

// writeFiles lays the files of an image out below a folder.
func writeFiles(to string, files []file) error {
	for _, f := range files {
		path := filepath.Join(to, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		var err error
		switch {
		case f.link != "":
			err = os.Symlink(f.link, path)
		case f.scratch:
			if err = os.MkdirAll(path, 0o755); err == nil {
				err = os.Chmod(path, 0o777|fs.ModeSticky)
			}
		default:
			err = os.WriteFile(path, f.data, f.mode())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
