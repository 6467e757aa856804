package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/cluster"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/memory"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

var (
	errStopped   = errors.New("the cluster is not running")
	errUnhealthy = errors.New("a component is not healthy")
)

func newStatus(resolve resolver) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the cluster's components; fails if it is stopped or unhealthy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := resolve()
			if err != nil {
				return err
			}
			c, err := controlplane.Open(dir)
			if err != nil {
				return err
			}
			pid, err := dir.Holder()
			if err != nil {
				return err
			}
			if pid == 0 {
				return fmt.Errorf("%s: %w", dir, errStopped)
			}
			return status(cmd.Context(), c, pid, cmd.OutOrStdout())
		},
	}
}

func status(ctx context.Context, c controlplane.Cluster, pid int, out io.Writer) error {
	records, err := supervisor.ReadRecords(c.Dir)
	if err != nil {
		return err
	}
	client, err := cluster.NewClient(c.Dir)
	if err != nil {
		return err
	}
	checks, err := cluster.Checks(c, client)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d nodes with %d GPUs each, API %s, proxy %s\n\n",
		phase(c.State), c.State.Nodes, c.State.GPUsPerNode, c.State.APIServer, c.State.ProxyURL)

	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tRESTARTS\tRSS MiB\tPSS MiB\tHEALTH")
	var total memory.Usage
	row := func(name string, pid int, restarts, health string) {
		usage, _ := memory.Of(pid) // a process that just ended occupies nothing
		total.RSS += usage.RSS
		total.PSS += usage.PSS
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%d\t%s\n", name, pid, restarts, usage.RSS>>20, usage.PSS>>20, health)
	}
	row("supervisor", pid, "-", "ok")
	healthy := true
	for _, r := range records {
		answer := "ok"
		if err := checks[r.Name](ctx); err != nil {
			healthy = false
			answer, _, _ = strings.Cut(err.Error(), "\n")
		}
		row(r.Name, r.PID, strconv.Itoa(r.Restarts), answer)
	}
	fmt.Fprintf(table, "total\t\t\t%d\t%d\t\n", total.RSS>>20, total.PSS>>20)
	if err := table.Flush(); err != nil {
		return err
	}
	if !healthy {
		return errUnhealthy
	}
	return nil
}

func phase(s clusterdir.State) string {
	if s.Ready {
		return "running"
	}
	return "starting or stopping"
}
