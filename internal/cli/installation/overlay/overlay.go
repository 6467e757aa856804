// Package overlay makes an installation from Kustomize's own files, by Kustomize, for
// programs that install without it.
package overlay

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	manifests "github.com/dynamo-operator/dynamo-operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// Placeholders of config/namespaced: the namespace that is looked after, and that of the
// operator.
const (
	target = "dynamo-graphs"
	home   = installation.Namespace
)

// Namespaced is the operator for one namespace with rights in it alone, as
// config/namespaced has it, with the names of these namespaces.
func Namespaced(inHome, forTarget string) ([]*unstructured.Unstructured, error) {
	const root = "config"
	files := filesys.MakeFsInMemory()
	err := fs.WalkDir(manifests.Namespaced, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(manifests.Namespaced, file)
		if err != nil {
			return err
		}
		return files.WriteFile(path.Join("/", root, file), text)
	})
	if err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, path.Join("/", root, "namespaced"))
	if err != nil {
		return nil, fmt.Errorf("build config/namespaced: %w", err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	// The placeholders are whole words that nothing else is called by.
	renamed := strings.NewReplacer(home, inHome, target, forTarget).Replace(string(text))
	objects, err := installation.Decode(bytes.NewReader([]byte(renamed)))
	if err != nil {
		return nil, err
	}
	installation.Sort(objects)
	return objects, nil
}
