// Package console serves pages that show graphs live in a browser, with the rights
// of who started it: `kubectl dynamo ui`. Data flows one way here too: source
// watches, package view turns what was seen into pages, templates write them, and
// server-sent events carry what changed. It changes nothing without --allow-changes.
//
// A page of its own: a view in package view, a template in template/, and a line in
// the list of pages in server.go.
package console

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
)

// agent is how the console calls itself to the API server.
const agent = "kubectl-dynamo-ui"

// Command is the verb.
func Command() *cobra.Command {
	var to connect.Flags
	var o Options
	var everywhere, open bool
	command := &cobra.Command{
		Use:   "ui",
		Short: "See graphs live in the browser, ask them, and find out what they lack",
		Long: `Serves pages on this machine alone and prints the URL to open. The token in it works
once. What is shown is what you may read; nothing is changed without --allow-changes.
Ctrl-C ends it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if o.Cluster, o.Namespace = cluster, cluster.Namespace; everywhere {
				o.Namespace = ""
			}
			s, err := Listen(o)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The console of %s is open until Ctrl-C:\n\n  %s\n\n", o.place(), s.URL())
			if open {
				if err := show(ctx, s.URL()); err != nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "no browser opened: %v\n", err)
				}
			}
			return s.Run(ctx)
		},
	}
	to.Add(command.Flags())
	flags := command.Flags()
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "show graphs of every namespace")
	flags.IntVar(&o.Port, "port", 0, "port on 127.0.0.1; a free one if 0")
	flags.BoolVar(&o.AllowChanges, "allow-changes", false, "let pages change things, with your rights")
	flags.BoolVar(&open, "open", false, "open a browser")
	return command
}

// show opens the URL in a browser. What a browser is started with other users of the
// machine can read, so it is started with a file that only this user can.
func show(ctx context.Context, url string) error {
	folder, err := os.MkdirTemp("", "dynamo-ui-")
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "open.html")
	page := `<!DOCTYPE html><meta charset="utf-8"><title>Opening</title><meta http-equiv="refresh" content="0;url=` + html.EscapeString(url) + `">`
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return err
	}
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	go func() { // by then it is read, and the token in it used
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		_ = os.RemoveAll(folder) // a file of no use any more
	}()
	return exec.CommandContext(ctx, program, file).Start()
}
