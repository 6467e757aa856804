// Package status shows graphs and what runs for them as a tree, once or as it
// changes. It says what the operator reported and decides nothing of its own.
package status

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/liveview"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
)

// Command is the verb.
func Command() *cobra.Command {
	var to connect.Flags
	var follow bool
	command := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show a graph, its services, workloads and pods; without a name, every graph",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			s := sight{cluster: cluster}
			if len(args) > 0 {
				s.name = args[0]
			}
			if follow {
				return s.follow(ctx, cmd.OutOrStdout())
			}
			lines, err := s.lines(ctx)
			for _, line := range lines {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return err
		},
	}
	to.Add(command.Flags())
	command.Flags().BoolVarP(&follow, "watch", "w", false, "go on showing it as it changes, until interrupted")
	return command
}

// sight is what is looked at: one graph, or all if name is empty.
type sight struct {
	cluster *connect.Cluster
	name    string
}

// lines draws what there is now.
func (s sight) lines(ctx context.Context) ([]string, error) {
	graphs, err := s.graphs(ctx)
	if err != nil {
		return nil, err
	}
	if len(graphs) == 0 {
		return []string{fmt.Sprintf("no graph in namespace %s", s.cluster.Namespace)}, nil
	}
	var pods corev1.PodList
	if err := s.cluster.List(ctx, &pods, client.InNamespace(s.cluster.Namespace), client.HasLabels{v1alpha1.LabelGraphName}); err != nil {
		return nil, err
	}
	var lines []string
	for i := range graphs {
		lines = append(lines, tree.Lines(&graphs[i], pods.Items)...)
	}
	return lines, nil
}

func (s sight) graphs(ctx context.Context) ([]v1alpha1.DynamoGraphDeployment, error) {
	if s.name == "" {
		var list v1alpha1.DynamoGraphDeploymentList
		err := s.cluster.List(ctx, &list, client.InNamespace(s.cluster.Namespace))
		return list.Items, err
	}
	var one v1alpha1.DynamoGraphDeployment
	err := s.cluster.Get(ctx, types.NamespacedName{Namespace: s.cluster.Namespace, Name: s.name}, &one)
	return []v1alpha1.DynamoGraphDeployment{one}, err
}

// calm joins changes that come together into one drawing.
const calm = 100 * time.Millisecond

// follow draws again whenever a graph or a pod changes.
func (s sight) follow(ctx context.Context, w io.Writer) error {
	drawing := liveview.New(w)
	for ctx.Err() == nil {
		changes, stop, err := s.changes(ctx)
		if err != nil {
			return err
		}
		err = s.draw(ctx, drawing, changes)
		stop()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// draw goes on until a watch ends, as watches do.
func (s sight) draw(ctx context.Context, drawing *liveview.Picture, changes []watch.Interface) error {
	for {
		lines, err := s.lines(ctx)
		switch {
		case apierrors.IsNotFound(err):
			lines = []string{s.name + "  gone"}
		case err != nil:
			return err
		}
		drawing.Show(lines)
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-changes[0].ResultChan():
			if !open {
				return nil
			}
		case _, open := <-changes[1].ResultChan():
			if !open {
				return nil
			}
		}
		settle(ctx, changes)
	}
}

// settle lets what comes in short order pass.
func settle(ctx context.Context, changes []watch.Interface) {
	quiet := time.NewTimer(calm)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-quiet.C:
			return
		case _, open := <-changes[0].ResultChan():
			if !open {
				return
			}
		case _, open := <-changes[1].ResultChan():
			if !open {
				return
			}
		}
	}
}

// changes watches graphs and pods of the namespace.
func (s sight) changes(ctx context.Context) (changes []watch.Interface, stop func(), err error) {
	stop = func() {
		for _, c := range changes {
			c.Stop()
		}
	}
	lists := []client.ObjectList{&v1alpha1.DynamoGraphDeploymentList{}, &corev1.PodList{}}
	for _, list := range lists {
		c, err := s.cluster.Watch(ctx, list, client.InNamespace(s.cluster.Namespace))
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("watch %T: %w", list, err)
		}
		changes = append(changes, c)
	}
	return changes, stop, nil
}
