package session

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/bundle"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/online"
)

// DropIn runs the profiler in the stead of the one of Dynamo's runtime: it takes
// the same arguments and environment and leaves the same files.
func DropIn() *cobra.Command {
	var (
		f    flags
		text string
	)
	command := &cobra.Command{
		Use:   "profile-sla --profile-config TEXT",
		Short: "Profile as the profiler of Dynamo's runtime does, and leave its files",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.dropIn(cmd.Context(), text) },
	}
	command.Flags().StringVar(&text, "profile-config", "", "the configuration, as YAML, JSON or what Python prints")
	command.Flags().Bool("enable-gpu-discovery", false, "has no effect: the configuration names the hardware")
	f.around(command.Flags(), "`file` for the last words of a run that failed")
	if err := command.MarkFlagRequired("profile-config"); err != nil {
		panic(err) // the flag is defined above
	}
	f.request, f.namespace = os.Getenv("DGDR_NAME"), os.Getenv("DGDR_NAMESPACE")
	return command
}

// DropInOfOne does the same for profilers of 1.x: what it is asked is a request of
// v1beta1, as a text or a file.
func DropInOfOne() *cobra.Command {
	var (
		f    flags
		text string
	)
	command := &cobra.Command{
		Use:   "profile --config TEXT --output-dir FOLDER",
		Short: "Profile as the profiler of Dynamo 1.x does, and leave its files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if body, err := os.ReadFile(text); err == nil {
				text = string(body)
			}
			return f.dropIn(cmd.Context(), text)
		},
	}
	command.Flags().StringVar(&text, "config", "", "spec of a request of v1beta1, as JSON or YAML, or a `file` with it")
	command.Flags().StringVar(&f.output, "output-dir", "profiling_results", "`folder` for the files")
	f.around(command.Flags(), "`file` for the last words of a run that failed")
	if err := command.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag is defined above
	}
	f.request, f.namespace = os.Getenv("DGDR_NAME"), os.Getenv("DGDR_NAMESPACE")
	return command
}

func (f *flags) dropIn(ctx context.Context, text string) error {
	c, err := config.Parse(text)
	if err != nil {
		return f.told(nil, bundle.Failure(err), nil)
	}
	end, err := Run{
		Config: text, Catalog: perfmodel.Default(), Sink: Both{Notes{os.Stderr}, Folder{cmp.Or(f.output, c.OutputDir)}},
		Names: bundle.Names{Graph: graph.RequestedGraph(cmp.Or(f.request, "profile")), ProfileData: "planner-profile-data"},
		Runner: func(c *config.Config) (*online.Runner, error) {
			client, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
			if err != nil {
				return nil, fmt.Errorf("reach the cluster: %w", err)
			}
			return f.runner(c, client, f.owner())
		},
	}.Do(ctx)
	return f.told(nil, end, err)
}

// owner is the request, as far as the environment tells of it.
func (f *flags) owner() []metav1.OwnerReference {
	uid := os.Getenv("DGDR_UID")
	if f.request == "" || uid == "" {
		return nil
	}
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindDynamoGraphDeploymentRequest, Name: f.request, UID: types.UID(uid),
	}}
}
