package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/doctor"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/budget"
)

// configurations are those of the operators of a cluster, as they were last read.
type configurations struct {
	mu      sync.Mutex
	running bool
	at      time.Time
	all     []corev1.ConfigMap
	problem string
}

// unreadBudgets is what a page says without them.
const unreadBudgets = "Budgets of the namespace and of all graphs are not shown: "

// budgets are those of GPUs that the operator of a namespace is configured with; nil if
// they are not known, with the reason in words. Old ones are replaced behind the page's
// back.
func (s *Server) budgets(namespace string) (says *budget.Budgets, unknown string) {
	c := &s.configured
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running && time.Since(c.at) > findingsAge {
		c.running = true
		go s.configure()
	}
	switch {
	case c.at.IsZero():
		return nil, "Reading the operator's configuration …"
	case c.problem != "":
		return nil, unreadBudgets + c.problem
	}
	for i := range c.all {
		of, covers, err := installation.Budgets(&c.all[i], namespace)
		switch {
		case err != nil:
			return nil, unreadBudgets + err.Error()
		case covers:
			return &of, ""
		}
	}
	return nil, unreadBudgets + "no operator that looks after namespace " + namespace + " was found."
}

func (s *Server) configure() {
	ctx, cancel := context.WithTimeout(context.Background(), findingsTimeout)
	defer cancel()
	all, err := readConfigurations(ctx, s.options.Cluster)
	problem := ""
	switch {
	case apierrors.IsForbidden(err):
		problem = "you may not list deployments of all namespaces and get the ConfigMap of the operator. Condition ScalingLimited says when one of them holds."
	case err != nil:
		problem = err.Error()
	}
	c := &s.configured
	c.mu.Lock()
	c.all, c.problem, c.at, c.running = all, problem, time.Now(), false
	c.mu.Unlock()
	s.source.changes.notify()
}

// readConfigurations gets the ConfigMaps that operators mount.
func readConfigurations(ctx context.Context, from client.Reader) ([]corev1.ConfigMap, error) {
	operators, err := doctor.Operators(ctx, from)
	if err != nil {
		return nil, err
	}
	var all []corev1.ConfigMap
	for _, o := range operators {
		for _, v := range o.Spec.Template.Spec.Volumes {
			if v.ConfigMap == nil {
				continue
			}
			var held corev1.ConfigMap
			if err := from.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: v.ConfigMap.Name}, &held); err != nil {
				return nil, fmt.Errorf("read the configuration of operator %s/%s: %w", o.Namespace, o.Name, err)
			}
			if installation.Configures(&held) {
				all = append(all, held)
			}
		}
	}
	return all, nil
}
