// Package addon knows what can be put into a cluster beside Kubernetes: kinds of other projects and, where it can be had,
// the program that gives them life. It describes programs as controlplane does and installs their kinds; it starts
// nothing itself, and it never takes an add-on away, because by then the kinds have objects.
//
// Manifests and programs are found next to the running executable, where the build collects them: a cluster needs
// neither the network nor a Go toolchain.
package addon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/health"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// ErrUnknown says that there is no add-on of a name.
var ErrUnknown = errors.New("unknown add-on")

// addOn is one entry of the catalogue. Only the name is always there.
type addOn struct {
	name string

	// adapt changes a manifest for this cluster, or drops it.
	adapt func(controlplane.Cluster, *unstructured.Unstructured) (keep bool, err error)
	// grants are the roles and bindings of the program.
	grants func() []grant

	component string // the program's name; without one the rest has no meaning
	outside   bool   // it is a file beside this binary, not an applet of it
	program   func(controlplane.Cluster) (supervisor.Program, error)
	check     func(controlplane.Cluster) (health.Check, error)
}

// catalogue is in the order in which programs start.
var catalogue = []addOn{
	{name: "grove", grants: groveGrants, component: GroveName, program: groveProgram, check: groveCheck},
	{name: "inference"},
	{name: "istio", adapt: onlyVirtualServices},
	{name: "lws", adapt: adaptLWS, grants: lwsGrants, component: LWSName, outside: true, program: lwsProgram, check: lwsCheck},
	{name: "volcano"},
}

// Names lists the catalogue.
func Names() []string {
	var names []string
	for _, a := range catalogue {
		names = append(names, a.name)
	}
	return names
}

// Set is a choice from the catalogue, in its order.
type Set []addOn

// Choose returns the add-ons of these names; a name may come twice.
func Choose(names []string) (Set, error) {
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("%q: %w; there are: %s", name, ErrUnknown, strings.Join(Names(), ", "))
		}
	}
	var set Set
	for _, a := range catalogue {
		if slices.Contains(names, a.name) {
			set = append(set, a)
		}
	}
	return set, nil
}

// Programs describes what the add-ons run.
func (s Set) Programs(c controlplane.Cluster) ([]supervisor.Program, error) {
	folder, err := folder()
	if err != nil {
		return nil, err
	}
	var programs []supervisor.Program
	for _, a := range s {
		if a.component == "" {
			continue
		}
		program, err := a.program(c)
		if err != nil {
			return nil, fmt.Errorf("add-on %s: %w", a.name, err)
		}
		if a.outside {
			program.Path = filepath.Join(folder, a.component)
		}
		programs = append(programs, program)
	}
	return programs, nil
}

// Checks says how to ask each program whether it does its work.
func (s Set) Checks(c controlplane.Cluster) (map[string]health.Check, error) {
	checks := map[string]health.Check{}
	for _, a := range s {
		if a.component == "" {
			continue
		}
		check, err := a.check(c)
		if err != nil {
			return nil, fmt.Errorf("prepare check of %s: %w", a.component, err)
		}
		checks[a.component] = check
	}
	return checks, nil
}

// Available reports what of the set was not built, before anything is started.
func (s Set) Available() error {
	folder, err := folder()
	if err != nil {
		return err
	}
	for _, a := range s {
		needed := []string{a.manifests(folder)}
		if a.outside {
			needed = append(needed, filepath.Join(folder, a.component))
		}
		for _, file := range needed {
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("add-on %s was not built (see `make addons`): %w", a.name, err)
			}
		}
	}
	return nil
}

// manifests is the folder that the build fills with the add-on's kinds.
func (a addOn) manifests(folder string) string { return filepath.Join(folder, "addons", a.name) }

// folder is that of the running executable.
func folder() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own executable: %w", err)
	}
	if executable, err = filepath.EvalSymlinks(executable); err != nil {
		return "", fmt.Errorf("find own executable: %w", err)
	}
	return filepath.Dir(executable), nil
}
