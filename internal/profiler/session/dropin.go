package session

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
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
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`file` that says how to reach the cluster; empty in a pod")
	command.Flags().StringVar(&f.proxy, "forward-proxy", os.Getenv("DYNAMO_FORWARD_PROXY"), "`URL` of a proxy through which Services are reached")
	command.Flags().StringVar(&f.lastWords, "termination-log", lastWords, "`file` for the last words of a run that failed")
	if err := command.MarkFlagRequired("profile-config"); err != nil {
		panic(err) // the flag is defined above
	}
	f.request, f.namespace = os.Getenv("DGDR_NAME"), os.Getenv("DGDR_NAMESPACE")
	return command
}

func (f *flags) dropIn(ctx context.Context, text string) error {
	catalog, err := Catalog("")
	if err != nil {
		return err
	}
	c, err := config.Parse(text)
	if err != nil {
		return f.told(nil, bundle.Failure(err), nil)
	}
	name := f.request
	if name == "" {
		name = "profile"
	}
	end, err := Run{
		Config: text, Catalog: catalog, Sink: Both{Notes{os.Stderr}, Folder{c.OutputDir}},
		Names: bundle.Names{Graph: graph.RequestedGraph(name), ProfileData: "planner-profile-data"},
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
