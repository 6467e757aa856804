package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
)

// newKubectl hands everything but a leading --dir to kubectl.
func newKubectl(resolve resolver, kubectl func() int) *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [--dir DIR] ...",
		Short:              "Run kubectl against the cluster",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			dir, rest, err := kubectlDir(resolve, args)
			if err != nil {
				return err
			}
			if _, err := dir.ReadState(); err != nil {
				return err
			}
			if err := os.Setenv("KUBECONFIG", dir.Kubeconfig()); err != nil {
				return fmt.Errorf("set KUBECONFIG: %w", err)
			}
			os.Args = append([]string{"kubectl"}, rest...)
			os.Exit(kubectl())
			return nil
		},
	}
}

func kubectlDir(resolve resolver, args []string) (clusterdir.Dir, []string, error) {
	switch {
	case len(args) >= 2 && args[0] == "--dir":
		dir, err := clusterdir.Resolve(args[1])
		return dir, args[2:], err
	case len(args) >= 1 && strings.HasPrefix(args[0], "--dir="):
		dir, err := clusterdir.Resolve(strings.TrimPrefix(args[0], "--dir="))
		return dir, args[1:], err
	}
	dir, err := resolve()
	return dir, args, err
}
