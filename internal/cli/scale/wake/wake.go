// Package wake is the verb that wakes a graph which scales to zero, before anybody asks
// for it. It writes what a request would have written: the time on the graph's Lease.
package wake

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// fieldManager owns the time that is written.
const fieldManager = "kubectl-dynamo"

// Command is the verb.
func Command() *cobra.Command {
	var flags connect.Flags
	var waiting time.Duration
	command := &cobra.Command{
		Use:     "wake GRAPH",
		Short:   "Start the workers of a graph that scaled to zero",
		Long:    "Starts the workers of a graph that scaled to zero, as a request would. They end again\nwhen no request comes for the time that the graph says.",
		Example: "  kubectl dynamo scale wake chat --wait 10m",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := flags.Cluster()
			if err != nil {
				return err
			}
			key := types.NamespacedName{Namespace: cluster.Namespace, Name: args[0]}
			return run(cmd.Context(), cluster, key, waiting, time.Now(), sanitise.Document(cmd.OutOrStdout()))
		},
	}
	flags.Add(command.Flags())
	command.Flags().DurationVar(&waiting, "wait", 0, "wait so long for the workers to be ready")
	return command
}

// Tell wakes a graph, and returns what came of it in words. The time is the API server's
// where it says so.
func Tell(ctx context.Context, cluster client.Client, key types.NamespacedName, now time.Time) (said string, err error) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := cluster.Get(ctx, key, dgd); err != nil {
		return "", fmt.Errorf("read graph %s: %w", key, err)
	}
	was := dormancy.Told(dgd.Status.Conditions)
	if was == "" {
		return "", fmt.Errorf("graph %s does not scale to zero: it needs the annotation %s, and a frontend", key.Name, v1alpha1.AnnotationScaleToZeroAfter)
	}
	if err := renew(ctx, cluster, key, now); err != nil {
		return "", err
	}
	if was != dormancy.Dormant {
		return fmt.Sprintf("graph %s is awake", key.Name), nil
	}
	return fmt.Sprintf("graph %s is told to wake", key.Name), nil
}

func run(ctx context.Context, cluster client.Client, key types.NamespacedName, waiting time.Duration, now time.Time, out io.Writer) error {
	said, err := Tell(ctx, cluster, key, now)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, said)
	if waiting <= 0 {
		return nil
	}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, waiting, true, func(ctx context.Context) (bool, error) {
		err := cluster.Get(ctx, key, dgd)
		return err == nil && dormancy.Told(dgd.Status.Conditions) == dormancy.Active, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for graph %s to be awake: %w", key.Name, err)
	}
	fmt.Fprintf(out, "graph %s serves\n", key.Name)
	return nil
}

// renew says that a request came now. It never puts the time back: requests may have come
// since, and a graph whose last one seems to be long ago sleeps.
func renew(ctx context.Context, cluster client.Client, key types.NamespacedName, now time.Time) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: graph.ActivationName(key.Name)}}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		at, err := look(ctx, cluster, lease, now)
		if err != nil {
			return err
		}
		if last := lease.Spec.RenewTime; last != nil && last.After(at) && !last.After(at.Add(dormancy.Skew)) {
			return nil
		}
		return write(ctx, cluster, lease, map[string]any{
			"metadata": map[string]any{"resourceVersion": lease.ResourceVersion},
			"spec":     map[string]any{"renewTime": metav1.NewMicroTime(at)},
		})
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("graph %s has no Lease %s yet; the operator makes it", key.Name, lease.Name)
	}
	if err != nil {
		return fmt.Errorf("renew Lease %s: %w", lease.Name, err)
	}
	return nil
}

// look reads a Lease and the API server's clock, by a write that changes nothing: the time
// is compared with those of the cluster, and the clock here may be wrong. It is believed
// where the API server does not say when it was written to.
func look(ctx context.Context, cluster client.Client, lease *coordinationv1.Lease, now time.Time) (time.Time, error) {
	asks := fieldManager + " " + now.Format(time.RFC3339Nano) // which nobody else is
	if err := write(ctx, cluster, lease, map[string]any{"spec": map[string]any{"holderIdentity": asks}}, client.DryRunAll); err != nil {
		return now, err
	}
	for _, entry := range lease.ManagedFields {
		if entry.Manager == fieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Time != nil {
			now = entry.Time.Time
		}
	}
	return now, nil
}

func write(ctx context.Context, cluster client.Client, lease *coordinationv1.Lease, change map[string]any, options ...client.PatchOption) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return cluster.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch), append(options, client.FieldOwner(fieldManager))...)
}
