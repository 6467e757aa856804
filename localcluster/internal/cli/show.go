package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/version"
	kubernetesversion "k8s.io/component-base/version"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
)

func newKubeconfig(resolve resolver) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := resolve()
			if err != nil {
				return err
			}
			if _, err := dir.ReadState(); err != nil {
				return err
			}
			data, err := os.ReadFile(dir.Kubeconfig())
			if err != nil {
				return fmt.Errorf("read kubeconfig: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
}

func newLogs(resolve resolver) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs [COMPONENT]",
		Short: "Print the log of a component, or name those that have one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := resolve()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return listLogs(dir, cmd.OutOrStdout())
			}
			return printLog(cmd.Context(), dir, args[0], follow, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more")
	return cmd
}

func logNames(dir clusterdir.Dir) ([]string, error) {
	if _, err := dir.ReadState(); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(dir.Log("*"))
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".log")
	}
	return files, nil
}

func listLogs(dir clusterdir.Dir, out io.Writer) error {
	names, err := logNames(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.Join(names, "\n"))
	return nil
}

func printLog(ctx context.Context, dir clusterdir.Dir, component string, follow bool, out io.Writer) error {
	names, err := logNames(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(names, component) {
		return fmt.Errorf("no log of %q; there are: %s", component, strings.Join(names, ", "))
	}
	file, err := os.Open(dir.Log(component))
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = file.Close() }()
	for {
		if _, err := io.Copy(out, file); err != nil {
			return fmt.Errorf("print log: %w", err)
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Kubernetes and etcd inside",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			built := kubernetesversion.Get()
			if built.GitVersion == "" {
				return errors.New("built without a version; see the build command in README.md")
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kubernetes %s\netcd v%s\n%s\n", built.GitVersion, version.Version, built.GoVersion)
			return err
		},
	}
}
