// Package fakegrove stands in for the Grove operator, which cannot be built into this binary: it gives PodCliqueSets
// their cliques, scaling groups, Services and pods, under Grove's names, labels and environment, and reports on them as
// Grove does. It places no gangs: there are no PodGangs, no topology, no gang termination, no autoscalers and no
// admission, but that a clique is made with one pod at least and nothing from a scaling group of none. What it shows about a graph is its shape, its order of start and its rollout, not its placement.
//
// A change of templates goes as with Grove: cliques and groups are updated one after the other, a moment later; a clique
// whose turn has not come looks as well as before, and so does one whose annotations alone change (its generation stays);
// the set says that it observed the change only when all of them are through; and errors that only mean "again" stand in
// the status.
//
//	PodCliqueSet --observe--> world --plan--> groups, cliques, pods --apply--> status
//
// One pass looks at a whole set. Nothing is remembered between passes.
package fakegrove

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Config says whom to ask and where to answer.
type Config struct {
	Kubeconfig    string
	HealthAddress string
}

// concurrency is how many sets are worked on at once; each pass waits for the API server most of the time.
const concurrency = 4

// Run works until the context ends.
func Run(ctx context.Context, c Config) error {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	rest, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	rest.QPS, rest.Burst = 400, 800
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, grovev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("build scheme: %w", err)
		}
	}
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{common.LabelManagedByKey: common.LabelManagedByValue})}
	m, err := manager.New(rest, manager.Options{
		Scheme:                 scheme,
		Cache:                  cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: ours, &corev1.Service{}: ours}},
		HealthProbeBindAddress: c.HealthAddress,
		Metrics:                metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return fmt.Errorf("build manager: %w", err)
	}
	if err := m.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	err = builder.ControllerManagedBy(m).
		For(&grovev1alpha1.PodCliqueSet{}).
		Watches(&grovev1alpha1.PodCliqueScalingGroup{}, toSet).
		Watches(&grovev1alpha1.PodClique{}, toSet).
		Watches(&corev1.Service{}, toSet).
		Watches(&corev1.Pod{}, toSet).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&reconciler{client: m.GetClient()})
	if err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	return m.Start(ctx)
}

// toSet finds the set that an object is part of.
var toSet = handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
	set := object.GetLabels()[common.LabelPartOfKey]
	if set == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: set}}}
})
