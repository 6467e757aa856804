package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/addon"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/cluster"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
)

// upFlags are shared by up and by the supervisor it leaves behind.
type upFlags struct {
	nodes       int
	gpusPerNode int
	devices     map[string]int
	subnet      uint8
	binDir      string
	auditLog    bool
	serverOnly  bool
	with        []string
}

func (f *upFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.nodes, "nodes", 0, "number of nodes (default 4, or as before)")
	flags.IntVar(&f.gpusPerNode, "gpus-per-node", 0, "simulated GPUs of each node (default 8, or as before)")
	flags.StringToIntVar(&f.devices, "devices", nil, "simulated devices of each node for resource claims, as class=number (default: as many as GPUs of "+
		strings.Join(slices.Sorted(maps.Keys(device.Default(0))), ", ")+", or as before)")
	flags.Uint8Var(&f.subnet, "subnet", 0, "byte k of the cluster's addresses 10.k.0.0/16 and 127.k.0.0/16 (default: a free one)")
	flags.StringVar(&f.binDir, "bin-dir", "", "folder of the programs that pods run (default: that of localcluster)")
	flags.BoolVar(&f.auditLog, "audit-log", false, "write metadata of every mutating request to logs/audit.log")
	flags.BoolVar(&f.serverOnly, "server-only", false, "start etcd and the API server alone: nothing is scheduled, run or collected")
	flags.StringSliceVar(&f.with, "with", nil, "add-ons, which the cluster keeps from then on: "+strings.Join(addon.Names(), ", "))
}

func (f *upFlags) options(cmd *cobra.Command, dir clusterdir.Dir) (cluster.Options, error) {
	o := cluster.Options{Dir: dir, Nodes: f.nodes, Subnet: f.subnet, AuditLog: f.auditLog, ServerOnly: f.serverOnly, With: f.with}
	if _, err := addon.Choose(f.with); err != nil {
		return o, fmt.Errorf("--with: %w", err)
	}
	if cmd.Flags().Changed("gpus-per-node") {
		o.GPUsPerNode = &f.gpusPerNode
	}
	if cmd.Flags().Changed("devices") {
		o.Devices = f.devices
	}
	if cmd.Flags().Changed("nodes") && f.nodes < 1 {
		return o, fmt.Errorf("--nodes=%d: a cluster has at least one", f.nodes)
	}
	var err error
	o.BinDir, err = resolveBinDir(f.binDir)
	return o, err
}

func resolveBinDir(flag string) (string, error) {
	if flag == "" {
		executable, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find own executable: %w", err)
		}
		if executable, err = filepath.EvalSymlinks(executable); err != nil {
			return "", fmt.Errorf("find own executable: %w", err)
		}
		return filepath.Dir(executable), nil
	}
	abs, err := filepath.Abs(flag)
	if err != nil {
		return "", fmt.Errorf("resolve --bin-dir %q: %w", flag, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("--bin-dir: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("--bin-dir %s is not a folder", abs)
	}
	return abs, nil
}

func newUp(resolve resolver) *cobra.Command {
	var flags upFlags
	var detach bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster and stay until Ctrl-C, or in the background with --detach",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := resolve()
			if err != nil {
				return err
			}
			options, err := flags.options(cmd, dir)
			if err != nil {
				return err
			}
			return up(cmd, options, detach)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&detach, "detach", false, "return when the cluster is ready and leave it running")
	return cmd
}

func up(cmd *cobra.Command, o cluster.Options, detach bool) error {
	if running, err := reuse(cmd, o); running {
		return err
	}
	if missing := missingPrograms(o.BinDir); len(missing) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: no %s in %s: pods that need them will not start (see --bin-dir)\n",
			strings.Join(missing, ", "), o.BinDir)
	}
	begin := run
	if detach {
		begin = runDetached
	}
	err := begin(cmd, o, &screen{out: cmd.OutOrStdout(), begin: time.Now(), kubeconfig: o.Dir.Kubeconfig()})
	if err != nil {
		// Ours has given its lock up, so if somebody has it, another `up` was quicker.
		if running, err := reuse(cmd, o); running {
			return err
		}
	}
	return err
}

// run keeps the cluster in the foreground.
func run(cmd *cobra.Command, o cluster.Options, screen *screen) error {
	if err := cluster.Run(cmd.Context(), o, screen); err != nil {
		return err
	}
	fmt.Fprintln(screen.out, "stopped")
	return nil
}

// reuse reports whether the cluster is running already, which is an error if it is not the one that was asked for.
func reuse(cmd *cobra.Command, o cluster.Options) (running bool, err error) {
	pid, err := o.Dir.Holder()
	if err != nil || pid == 0 {
		return false, nil // whatever is wrong with the directory shows when it is used
	}
	state, err := cluster.Await(cmd.Context(), o.Dir)
	if err != nil {
		return true, err
	}
	if err := o.CheckRunning(state); err != nil {
		return true, err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "already running (supervisor %d) at %s\nexport KUBECONFIG=%s\n", pid, state.APIServer, o.Dir.Kubeconfig())
	return true, nil
}

// missingPrograms names what pods may want to run and cannot.
func missingPrograms(binDir string) []string {
	var missing []string
	for _, name := range []string{"dynamo-mocker", "dynamo-operator"} {
		if info, err := os.Stat(filepath.Join(binDir, name)); err != nil || info.Mode()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}

// screen shows a start to a person.
type screen struct {
	out        io.Writer
	begin      time.Time
	kubeconfig string
}

func (s *screen) Progress(line string) { fmt.Fprintln(s.out, line) }

func (s *screen) Ready(state clusterdir.State) {
	fmt.Fprintf(s.out, "cluster ready %.1fs: %d nodes with %d GPUs each, addresses 10.%d.0.0/16, proxy %s\n",
		time.Since(s.begin).Seconds(), state.Nodes, state.GPUsPerNode, state.Subnet, state.ProxyURL)
	fmt.Fprintf(s.out, "export KUBECONFIG=%s\n", s.kubeconfig)
}
