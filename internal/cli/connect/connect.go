// Package connect finds the cluster that a verb is about, the way kubectl does.
package connect

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// Flags are those by which a user says which cluster and namespace.
type Flags struct {
	kubeconfig, context, namespace string
}

// Add adds the flags to those of a verb about objects of a namespace.
func (f *Flags) Add(flags *pflag.FlagSet) {
	f.AddCluster(flags)
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace; that of the context if not given")
}

// AddCluster adds the flags to those of a verb about a whole cluster.
func (f *Flags) AddCluster(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster")
	flags.StringVar(&f.context, "context", "", "context of that file")
}

// Given is the namespace that the user named; empty if that is left to the context.
func (f *Flags) Given() string { return f.namespace }

// Cluster is a cluster to ask.
type Cluster struct {
	client.WithWatch
	Config *rest.Config
	// Pods reads logs.
	Pods      typedcorev1.PodsGetter
	Namespace string
}

// Cluster connects. No request is sent yet.
func (f *Flags) Cluster() (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	namespace := f.namespace
	if namespace == "" {
		if namespace, _, err = loaded.Namespace(); err != nil {
			return nil, fmt.Errorf("find the namespace: %w", err)
		}
	}
	return To(config, namespace)
}

// To connects to a cluster whose address is known. No request is sent yet.
func To(config *rest.Config, namespace string) (*Cluster, error) {
	log.SetLogger(logr.Discard()) // what goes wrong comes back as an error
	// The server shares itself out among its clients; a limit here would only make a
	// verb that asks much look as if the server were slow. kubectl has the same.
	config.QPS, config.Burst = 50, 300
	c := &Cluster{Config: config, Namespace: namespace}
	var err error
	if c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme.New()}); err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	if c.Pods, err = typedcorev1.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return c, nil
}
