package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/cluster"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/clusterdir"
)

// `up --detach` leaves a supervisor behind: this binary again, in a session of its own. Until the cluster is ready the
// two share a pipe, on which the supervisor tells how the start goes.

const superviseName = "supervise"

// report is one message of the supervisor; exactly one field is set.
type report struct {
	Line  string            `json:"line,omitempty"`
	Ready *clusterdir.State `json:"ready,omitempty"`
	Error string            `json:"error,omitempty"`
}

// runDetached starts the supervisor and returns when it reports success or failure.
func runDetached(cmd *cobra.Command, o cluster.Options, screen *screen) error {
	// Errors about the directory are best found here, before a log is written into it.
	if err := o.Dir.Create(); err != nil {
		return err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("open pipe to supervisor: %w", err)
	}
	defer func() { _ = reader.Close() }()
	supervisor := exec.Command("/proc/self/exe", superviseArgs(o)...)
	supervisor.Args[0] = os.Args[0]
	supervisor.ExtraFiles = []*os.File{writer}
	supervisor.Dir = "/" // it must not keep the caller's folder busy
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = supervisor.Start()
	_ = writer.Close() // the supervisor has its own
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}

	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-cmd.Context().Done(): // Ctrl-C before it was ready
			_ = supervisor.Process.Signal(syscall.SIGTERM)
		case <-stopped:
		}
	}()
	for messages := json.NewDecoder(reader); ; {
		var message report
		if err := messages.Decode(&message); err != nil {
			if errors.Is(err, io.EOF) {
				err = supervisor.Wait()
			}
			return errors.Join(errors.New("the supervisor ended before the cluster was ready"), err)
		}
		switch {
		case message.Error != "":
			return errors.New(message.Error)
		case message.Ready != nil:
			screen.Ready(*message.Ready)
			return nil
		default:
			screen.Progress(message.Line)
		}
	}
}

func superviseArgs(o cluster.Options) []string {
	args := []string{
		superviseName,
		"--dir=" + string(o.Dir),
		"--bin-dir=" + o.BinDir,
		"--audit-log=" + strconv.FormatBool(o.AuditLog),
		"--server-only=" + strconv.FormatBool(o.ServerOnly),
	}
	if o.Nodes != 0 {
		args = append(args, "--nodes="+strconv.Itoa(o.Nodes))
	}
	if o.GPUsPerNode != nil {
		args = append(args, "--gpus-per-node="+strconv.Itoa(*o.GPUsPerNode))
	}
	if o.Devices != nil {
		var pairs []string
		for class, number := range o.Devices {
			pairs = append(pairs, class+"="+strconv.Itoa(number))
		}
		args = append(args, "--devices="+strings.Join(pairs, ","))
	}
	if o.Subnet != 0 {
		args = append(args, "--subnet="+strconv.Itoa(int(o.Subnet)))
	}
	if len(o.With) != 0 {
		args = append(args, "--with="+strings.Join(o.With, ","))
	}
	return args
}

// newSupervise is the other end; it is started by `up --detach` only.
func newSupervise(resolve resolver) *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use:    superviseName,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const pipe = 3 // the first of ExtraFiles
			syscall.CloseOnExec(pipe)
			messages := &reporter{pipe: os.NewFile(pipe, "pipe to up")}
			// It was started through /proc/self/exe, which ps and top would show.
			_ = os.WriteFile("/proc/self/comm", []byte("localcluster"), 0)
			dir, err := resolve()
			if err != nil {
				return messages.fail(err)
			}
			options, err := flags.options(cmd, dir)
			if err != nil {
				return messages.fail(err)
			}
			if err := cluster.Run(cmd.Context(), options, messages); err != nil {
				return messages.fail(err)
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}

// reporter sends a start over the pipe. Nobody may be listening any more, which must not stop the cluster.
type reporter struct{ pipe *os.File }

func (r *reporter) send(m report) { _ = json.NewEncoder(r.pipe).Encode(m) }

func (r *reporter) Progress(line string) { r.send(report{Line: line}) }

func (r *reporter) Ready(state clusterdir.State) {
	r.send(report{Ready: &state})
	_ = r.pipe.Close()
}

func (r *reporter) fail(err error) error {
	r.send(report{Error: err.Error()})
	return err
}
