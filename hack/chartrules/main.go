// Command chartrules copies the rules of our roles from config/rbac into the
// chart, so that a right is written down once.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// prefix of the names in config/rbac; the chart has names of its own.
const prefix = "dynamo-operator-"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: chartrules CONFIG-FOLDER CHART-FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chartrules:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		roles, err := decode(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, role := range roles {
			if err := write(to, strings.TrimPrefix(role.Name, prefix), role.Rules); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode takes the roles out of a stream of documents.
func decode(text []byte) ([]rbacv1.ClusterRole, error) {
	var roles []rbacv1.ClusterRole
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil {
			return nil, err
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

func write(to, name string, rules []rbacv1.PolicyRule) error {
	text, err := sigsyaml.Marshal(rules)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name+".yaml"), text, 0o644)
}
