// Package install puts the operator into a cluster, and takes it out again in an
// order in which nothing hangs.
package install

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/why"
)

// fieldManager is under whose name the installation is written.
const fieldManager = "kubectl-dynamo"

// Command is the verb that installs.
func Command() *cobra.Command {
	var to connect.Flags
	var at place
	var registry, image string
	var wait time.Duration
	var beta bool
	command := &cobra.Command{
		Use:   "install",
		Short: "Install the operator and the definitions of its API, or bring them up to date",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := at.validate(); err != nil {
				return err
			}
			images, err := installation.ImagesFrom(registry, image)
			if err != nil {
				return err
			}
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			var serve *bool
			if cmd.Flags().Changed("v1beta1") {
				serve = &beta
			}
			return run(ctx, cluster, at, images, serve, cmd.OutOrStdout())
		},
	}
	to.AddCluster(command.Flags())
	at.add(command.Flags())
	command.Flags().StringVar(&registry, "registry", "", "registry and path of all images, with the version of this program as their tag")
	command.Flags().StringVar(&image, "image", "", "image of the operator; the profiler's is beside it, with the same tag")
	command.Flags().BoolVar(&beta, "v1beta1", true, "serve v1beta1 beside v1alpha1; false keeps the cluster at v1alpha1. Not given, an update leaves it as it is")
	command.Flags().DurationVar(&wait, "timeout", 5*time.Minute, "how long to wait for all of it")
	return command
}

type step struct {
	what string
	do   func(context.Context) error
}

func run(ctx context.Context, cluster *connect.Cluster, at place, images installation.Images, beta *bool, out io.Writer) error {
	i := installation.Installer{Client: cluster.WithWatch, Owner: fieldManager, Images: images, Home: at.home}
	objects, err := at.objects()
	if err != nil {
		return err
	}
	if beta != nil {
		for _, object := range objects {
			if object.GetKind() != "ConfigMap" {
				continue
			}
			if err := installation.Configure(object, map[string]any{"api": map[string]any{"v1beta1": map[string]any{"enabled": *beta}}}); err != nil {
				return err
			}
		}
	}
	steps := []step{
		{"no other operator is in the way", func(ctx context.Context) error { return at.alone(ctx, i) }},
		{"configuration", func(ctx context.Context) error {
			kept, err := i.Inherit(ctx, objects)
			for _, setting := range kept {
				fmt.Fprintln(out, "· kept as it is:", setting)
			}
			return err
		}},
		{"definitions of the API", i.Definitions},
		{"operator and its rights", func(ctx context.Context) error { return i.Operator(ctx, objects) }},
		{"token of scrapers", func(ctx context.Context) error { return at.metricsToken(ctx, i.Client) }},
		{"operator is ready", func(ctx context.Context) error { return ready(ctx, cluster, i, at, out) }},
	}
	if at.converter {
		converter, err := installation.Converter(at.home)
		if err != nil {
			return err
		}
		steps = append(steps, step{"v1beta1 is served by a converter", func(ctx context.Context) error { return i.Converter(ctx, converter) }})
	}
	steps = append(steps, step{"the API answers", func(ctx context.Context) error {
		serves, err := installation.ServesBeta(objects)
		if err != nil {
			return err
		}
		return answers(ctx, i, serves && (at.target == "" || at.converter), out)
	}})
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "✓", step.what)
	}
	return nil
}

// betaPatience is how long v1beta1 is waited for: where API servers cannot reach the
// operator it is not served, and all else works.
const betaPatience = 30 * time.Second

// answers waits until the versions of the API answer, so that whoever writes objects
// next can.
func answers(ctx context.Context, i installation.Installer, beta bool, out io.Writer) error {
	if beta {
		limited, cancel := context.WithTimeout(ctx, betaPatience)
		defer cancel()
		err := i.Answers(limited, true)
		if err == nil || ctx.Err() != nil {
			return err
		}
		fmt.Fprintln(out, "·", err)
	}
	return i.Answers(ctx, false)
}

// lookEvery is how often a wait for the operator asks what keeps it.
const lookEvery = 2 * time.Second

// ready waits for the operator, and tells meanwhile what keeps it from being
// ready: some of it mends itself, the rest is why the wait ends in an error.
func ready(ctx context.Context, cluster *connect.Cluster, i installation.Installer, at place, out io.Writer) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- i.Ready(waiting) }()
	var last why.Diagnosis
	for tick := time.NewTicker(lookEvery); ; {
		select {
		case err := <-ended:
			tick.Stop()
			if err == nil || last.Cause == "" {
				return err
			}
			return fmt.Errorf("%w\ncause: %s\nwhat to do: %s", err, last.Cause, last.Todo)
		case <-tick.C:
			found, err := diagnose(waiting, cluster, at)
			if err == nil && found != last { // what cannot be read now is asked again
				last = found
				if found.Cause != "" {
					fmt.Fprintln(out, "·", found.Cause)
				}
			}
		}
	}
}

// diagnose says why the operator is not ready; nothing where there is no fault.
func diagnose(ctx context.Context, cluster *connect.Cluster, at place) (why.Diagnosis, error) {
	d := &appsv1.Deployment{}
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: at.home, Name: installation.Deployment}, d); err != nil {
		return why.Diagnosis{}, err
	}
	found, _, err := why.Operator(ctx, cluster, d)
	return found, err
}
