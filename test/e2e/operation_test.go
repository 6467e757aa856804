package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// operator is one that runs beside the cluster's own.
type operator struct {
	process *exec.Cmd
	said    *bytes.Buffer
	ended   chan error
}

// operate starts an operator with a configuration. It ends with the test.
func operate(t *testing.T, kubeconfig, configuration string) *operator {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\n" + configuration
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &operator{process: exec.Command(filepath.Join(binDir, "dynamo-operator"), "--config", file), said: &bytes.Buffer{}, ended: make(chan error, 1)}
	o.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	o.process.Stderr = o.said
	if err := o.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { o.ended <- o.process.Wait() }()
	t.Cleanup(func() { _ = o.process.Process.Kill() }) // it may have ended, as it should
	return o
}

// TestAReplicaThatEndsHandsOver would outlast its deadline if the lease had to
// run out.
func TestAReplicaThatEndsHandsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	configuration := fmt.Sprintf(`
namespaces: [%[1]s]
server: {metricsAddress: "", healthAddress: ""}
leaderElection: {enabled: true, id: replicas, namespace: %[1]s, leaseDuration: 30m, renewDeadline: 20m}
`, w.namespace)
	first := operate(t, w.cluster.Kubeconfig, configuration)
	leader := w.leaderOtherThan("")
	second := operate(t, w.cluster.Kubeconfig, configuration)

	if err := first.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-first.ended:
		if err != nil {
			t.Errorf("the first replica ended with %v:\n%s", err, first.said)
		}
	case <-w.ctx.Done():
		t.Fatal("the first replica does not end")
	}
	w.leaderOtherThan(leader)
	select {
	case err := <-second.ended:
		t.Errorf("the second replica ended with %v:\n%s", err, second.said)
	default:
	}
}

// leaderOtherThan waits for a lease that somebody else holds.
func (w world) leaderOtherThan(old string) (holder string) {
	w.Helper()
	w.eventually("a leader", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := w.cluster.Client.Get(ctx, w.key("replicas"), lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == old {
			return errors.New("nobody else holds the lease")
		}
		holder = *lease.Spec.HolderIdentity
		return nil
	})
	return holder
}

func TestAWrongConfigurationEndsTheStartWithAWord(t *testing.T) {
	t.Parallel()
	o := operate(t, shared.Kubeconfig, "controller: {wrokers: 3}\nlog: {levle: info}\n") //nolint:misspell // as somebody may mistype it
	err := <-o.ended
	if exit := (&exec.ExitError{}); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	for _, key := range []string{"controller.wrokers", "log.levle"} {
		if !strings.Contains(o.said.String(), key) {
			t.Errorf("%s is not named in:\n%s", key, o.said)
		}
	}
}

func TestTheMetricsOfAGraphComeAndGoWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	ready := fmt.Sprintf(`dynamo_operator_graph_ready{graph="quickstart",namespace=%q} 1`, w.namespace)
	counted := fmt.Sprintf(`dynamo_operator_resources_total{namespace=%q,resource_type="DynamoGraphDeployment",status="successful"} 1`, w.namespace)
	took := fmt.Sprintf(`dynamo_operator_graph_time_to_ready_seconds_count{namespace=%q}`, w.namespace)
	w.eventually("the graph's series", func(ctx context.Context) error {
		text, err := w.metrics(ctx)
		for _, series := range []string{ready, counted, took, `dynamo_operator_writes_total{code="201",resource="deployments",verb="apply"}`} {
			if err == nil && !strings.Contains(text, series) {
				err = fmt.Errorf("no series %s", series)
			}
		}
		return err
	})
	if err := w.cluster.Client.Delete(w.ctx, w.graph("quickstart")); err != nil {
		t.Fatal(err)
	}
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "quickstart")
	w.eventually("its series to be gone", func(ctx context.Context) error {
		text, err := w.metrics(ctx)
		if err == nil && strings.Contains(text, fmt.Sprintf("namespace=%q,resource_type=\"DynamoGraphDeployment\"", w.namespace)) {
			err = errors.New("still exported")
		}
		return err
	})
}

// metrics asks the cluster's operator.
func (w world) metrics(ctx context.Context) (string, error) {
	var pods corev1.PodList
	err := w.cluster.Client.List(ctx, &pods, client.InNamespace(localenv.OperatorKey.Namespace), client.MatchingLabels{"control-plane": "controller-manager"})
	if err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			continue
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":8080/metrics", http.NoBody)
		if err != nil {
			return "", err
		}
		response, err := w.cluster.HTTP.Do(request)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(response.Body)
		return string(text), errors.Join(err, response.Body.Close())
	}
	return "", errors.New("no pod of the operator")
}
