package collect

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Command is the verb that runs as a container beside a profiler of others.
func Command() *cobra.Command {
	var (
		o          Options
		kubeconfig string
	)
	c := &cobra.Command{
		Use:   "collect",
		Short: "Wait for a profiler in this pod and put its files into a ConfigMap",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			api, err := typedcorev1.NewForConfig(config)
			if err != nil {
				return err
			}
			return Run(c.Context(), api, o)
		},
	}
	f := c.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`file` that says how to reach the cluster; empty in a pod")
	f.StringVar(&o.From, "from", "/data", "folder with the profiler's files")
	f.StringVar(&o.Namespace, "namespace", "", "namespace of the pod and the ConfigMap")
	f.StringVar(&o.Pod, "pod", "", "pod that the profiler runs in")
	f.StringVar(&o.Container, "container", "profiler", "container that the profiler is")
	f.StringVar(&o.Result, "result", "", "ConfigMap to write to")
	f.StringVar(&o.Receipt, "termination-log", "/dev/termination-log", "`file` for the digests of what was written")
	f.DurationVar(&o.Every, "every", 2*time.Second, "how often to look")
	f.DurationVar(&o.GiveUpAfter, "patience", 5*time.Minute, "how long to go on if the pod cannot be looked at")
	for _, name := range []string{"namespace", "pod", "result"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flags are above
		}
	}
	return c
}
