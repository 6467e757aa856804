// Package rollout shows how the workers of a graph are rolled out, and tells the
// operator to go on, to stop or to go back. It writes annotations and specs of graphs;
// what comes of them is the operator's to decide.
package rollout

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

// fieldManager is whose the fields are that are written.
const fieldManager = client.FieldOwner("kubectl-dynamo")

// Command is the verb with those below it.
func Command() *cobra.Command {
	command := &cobra.Command{
		Use:   "rollout",
		Short: "Follow, promote, abort and undo the rollout of a graph's workers",
		Args:  cobra.NoArgs,
	}
	command.AddCommand(statusCommand(), pauseCommand(), resumeCommand(), promoteCommand(), abortCommand(), retryCommand(), undoCommand(), historyCommand())
	return command
}

// verb is a command about one graph.
func verb(use, short, long string, run func(context.Context, target, io.Writer, io.Writer) error) *cobra.Command {
	var to connect.Flags
	command := &cobra.Command{
		Use:   use + " NAME",
		Short: short,
		Long:  long,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := to.Cluster()
			if err != nil {
				return err
			}
			return run(cmd.Context(), target{cluster, cluster.Namespace, args[0]}, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	to.Add(command.Flags())
	return command
}

// target is a graph in a cluster.
type target struct {
	client.WithWatch
	namespace, name string
}

// graph reads the graph in the version that it is stored in.
func (t target) graph(ctx context.Context) (*v1alpha1.DynamoGraphDeployment, error) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := t.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: t.name}, dgd); err != nil {
		return nil, fmt.Errorf("read graph %s/%s: %w", t.namespace, t.name, err)
	}
	return dgd, nil
}

// revisions reads those that the graph owns: the label is anybody's to set.
func (t target) revisions(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) ([]*appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := t.List(ctx, &list, client.InNamespace(t.namespace), client.MatchingLabels{v1alpha1.LabelGraphName: graph.LabelValue(t.name)})
	if err != nil {
		return nil, fmt.Errorf("list revisions of graph %s/%s: %w", t.namespace, t.name, err)
	}
	var owned []*appsv1.ControllerRevision
	for i := range list.Items {
		for _, o := range list.Items[i].OwnerReferences {
			if o.UID == dgd.UID {
				owned = append(owned, &list.Items[i])
			}
		}
	}
	return revision.Sorted(owned), nil
}

// annotate writes annotations of the graph; an empty value removes one.
func (t target) annotate(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, values map[string]string) error {
	before := dgd.DeepCopy()
	for key, value := range values {
		if value == "" {
			delete(dgd.Annotations, key)
			continue
		}
		if dgd.Annotations == nil {
			dgd.Annotations = map[string]string{}
		}
		dgd.Annotations[key] = value
	}
	if err := t.Patch(ctx, dgd, client.MergeFrom(before), fieldManager); err != nil {
		return fmt.Errorf("annotate graph %s/%s: %w", t.namespace, t.name, err)
	}
	return nil
}
