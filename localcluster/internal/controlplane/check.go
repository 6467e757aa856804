package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/health"
)

// Checks says how to ask each program whether it does its work.
func Checks(c Cluster, client kubernetes.Interface) (map[string]health.Check, error) {
	checks := map[string]health.Check{
		EtcdName:  health.Unix(c.EtcdSocket(), "/health"),
		ProxyName: health.HTTP(c.State.ProxyURL + "/healthz"),
	}
	for name, url := range map[string]string{
		APIServerName:         c.State.APIServer + "/readyz",
		ControllerManagerName: c.componentURL(controllerManagerPort, "/healthz"),
		SchedulerName:         c.componentURL(schedulerPort, "/healthz"),
		NodeAgentName:         "https://" + c.State.KubeletAddress + "/healthz",
	} {
		check, err := health.TLS(url, c.PKI.CA, c.PKI.Admin)
		if err != nil {
			return nil, fmt.Errorf("prepare check of %s: %w", name, err)
		}
		checks[name] = check
	}
	checks[NodeAgentName] = both(checks[NodeAgentName], nodesReady(client, c.State.Nodes))
	return checks, nil
}

func both(first, second health.Check) health.Check {
	return func(ctx context.Context) error {
		if err := first(ctx); err != nil {
			return err
		}
		return second(ctx)
	}
}

// lostAnnotation on a Node asks the node agent to let it die; such a node is not a sign of bad health.
const lostAnnotation = "localcluster.dynamo/lost"

// nodesReady asks the API, because that is where the work of a node agent shows.
func nodesReady(client kubernetes.Interface, want int) health.Check {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		good := 0
		for _, node := range nodes.Items {
			if node.Annotations[lostAnnotation] == "true" || isReady(node) {
				good++
			}
		}
		if good < want {
			return fmt.Errorf("%d of %d nodes are ready", good, want)
		}
		return nil
	}
}

func isReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
