package session

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/bundle"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/file"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/online"
)

// lastWords is where a container leaves its last words; of a message at most so
// many bytes, so that with its quotes it fits the 4096 that a kubelet reads.
const (
	lastWords     = "/dev/termination-log"
	lastWordsSize = 1500
)

// Ended is a run that failed and said so; its status is the program's.
type Ended struct{ Result profileoutput.Result }

func (e Ended) Error() string { return fmt.Sprintf("%s: %s", e.Result.Reason, e.Result.Message) }

// ExitStatus is the status with which the program ends.
func (e Ended) ExitStatus() int { return e.Result.ExitStatus() }

type flags struct {
	config, digest, request, namespace, result, base, catalog, kubeconfig, proxy, output, lastWords string
}

// Command runs the profiler as the Job of a request.
func Command() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "run --config FILE --request NAME --namespace NAMESPACE --result CONFIGMAP",
		Short: "Profile for a request and write down what was found",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	command.Flags().StringVar(&f.config, "config", "", "`file` with the profiler's configuration")
	command.Flags().StringVar(&f.digest, "config-sha256", "", "the `sum` that the configuration must have; any without it")
	command.Flags().StringVar(&f.request, "request", "", "`name` of the request")
	command.Flags().StringVar(&f.namespace, "namespace", "", "`namespace` of the request")
	command.Flags().StringVar(&f.result, "result", "", "`ConfigMap` to write to; it must be there")
	command.Flags().StringVar(&f.base, "base", "", "`file` with a graph to start from; the configuration's engine.config without it")
	command.Flags().StringVar(&f.catalog, "catalog", "", "`file` with more models, GPUs or constants")
	command.Flags().StringVar(&f.output, "output", "", "`folder` for files as well; the configuration's outputDir if it exists")
	f.around(command.Flags(), "`file` for the digests of what was found, or the last words of a run that failed")
	for _, name := range []string{"config", "request", "namespace", "result"} {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return command
}

// around adds the flags by which a run finds what is around it.
func (f *flags) around(set *pflag.FlagSet, ofLastWords string) {
	set.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`file` that says how to reach the cluster; empty in a pod")
	set.StringVar(&f.proxy, "forward-proxy", os.Getenv("DYNAMO_FORWARD_PROXY"), "`URL` of a proxy through which Services are reached")
	set.StringVar(&f.lastWords, "termination-log", lastWords, ofLastWords)
}

func (f *flags) run(ctx context.Context) error {
	client, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	core, err := typedcorev1.NewForConfig(client)
	if err != nil {
		return fmt.Errorf("reach the cluster: %w", err)
	}
	text, err := os.ReadFile(f.config)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if f.digest != "" && profileoutput.Sum(string(text)) != f.digest {
		return f.told(nil, profileoutput.Result{}, fmt.Errorf("configuration %s is not the one that was accepted; somebody changed it", f.config))
	}
	catalog, err := file.Catalog(f.catalog)
	if err != nil {
		return err
	}
	maps := core.ConfigMaps(f.namespace)
	labels := map[string]string{
		v1alpha1.LabelRequestName: graph.RequestedGraph(f.request), v1alpha1.LabelRequestNamespace: f.namespace, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
	}
	receipt := profileoutput.Receipt{}
	var sink Sink = Both{ConfigMap{API: maps, Name: f.result, Labels: labels, Receipt: receipt}, Notes{os.Stderr}}
	if folder := f.folder(string(text)); folder != "" {
		sink = Both{sink, Folder{folder}}
	}
	names := bundle.Names{Graph: graph.RequestedGraph(f.request), ProfileData: graph.RequestedConfigMap(f.request, "profile-data")}
	end, err := Run{
		Config: string(text), Base: f.base, Catalog: catalog, Names: names, Sink: sink,
		Runner: func(c *config.Config) (*online.Runner, error) {
			kept, err := maps.Get(ctx, f.result, metav1.GetOptions{})
			if err != nil {
				return nil, fmt.Errorf("read ConfigMap %s: %w", f.result, err)
			}
			return f.runner(c, client, kept.OwnerReferences)
		},
	}.Do(ctx)
	return f.told(receipt, end, err)
}

// told leaves a termination message: what a run that succeeded handed over, or
// the last words of one that failed.
func (f *flags) told(receipt profileoutput.Receipt, end profileoutput.Result, err error) error {
	switch {
	case end.State == profileoutput.Failed:
		// Best effort, here and below: the exit status says the same, if less of it.
		end.Message = end.Message[:min(lastWordsSize, len(end.Message))]
		_ = os.WriteFile(f.lastWords, []byte(end.Text()), 0o644)
		return Ended{end}
	case err != nil:
		_ = os.WriteFile(f.lastWords, []byte(err.Error()[:min(lastWordsSize, len(err.Error()))]), 0o644)
		return err
	case len(receipt) == 0:
		return nil // its files are all there is
	}
	if err := os.WriteFile(f.lastWords, []byte(receipt.Text()), 0o644); err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	return nil
}

// folder is where files go too: the one that is given, or the configuration's if
// somebody mounted it.
func (f *flags) folder(text string) string {
	if f.output != "" {
		return f.output
	}
	c, err := config.Parse(text)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(c.OutputDir); err != nil || !info.IsDir() {
		return ""
	}
	return c.OutputDir
}

// runner measures on behalf of an owner: the request.
func (f *flags) runner(c *config.Config, client *rest.Config, owner []metav1.OwnerReference) (*online.Runner, error) {
	graphs, err := dynamic.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1024}
	if f.proxy != "" {
		proxy, err := url.Parse(f.proxy)
		if err != nil || proxy.Host == "" {
			return nil, fmt.Errorf("invalid forward proxy %q", f.proxy)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	r := &online.Runner{
		Namespace: c.Deployment.Namespace, Request: f.request, Service: c.Deployment.ServiceName, Model: c.Deployment.Model,
		Timeout: c.Deployment.Timeout, Poll: 2 * time.Second, Goal: c.SLA, Sweep: c.Sweep,
		HTTP: &http.Client{Transport: transport},
	}
	if c.Request != nil && f.namespace != "" {
		r.Namespace = f.namespace // v1beta1 has no other place for candidates
	}
	// An owner must be in the same namespace.
	if r.Namespace == f.namespace {
		r.Owner = owner
	}
	resource := schema.GroupVersionResource{Group: v1alpha1.GroupName, Version: v1alpha1.SchemeGroupVersion.Version, Resource: "dynamographdeployments"}
	r.Graphs = graphs.Resource(resource).Namespace(r.Namespace)
	return r, nil
}
