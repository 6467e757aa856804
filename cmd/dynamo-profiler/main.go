// Command dynamo-profiler finds the configuration of a graph that meets a goal.
// It runs as the Job of a request, and beside profilers of others as the
// collector of what they leave.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/collect"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/session"
)

func main() {
	root := &cobra.Command{
		Use:           "dynamo-profiler",
		Short:         "Find the configuration of a graph that meets a goal",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(session.Command(), session.DropIn(), session.DropInOfOne(), collect.Command())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dynamo-profiler:", err)
		if ended, ok := errors.AsType[session.Ended](err); ok {
			os.Exit(ended.ExitStatus())
		}
		os.Exit(1)
	}
}
