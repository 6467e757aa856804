// Package observability holds dashboards and alerts against what they are about:
// a cluster that serves requests, and a Prometheus that scrapes it.
package observability

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

var observe = flag.Bool("observe", false, "start a cluster and a Prometheus, and ask it every query of dashboards and alerts (make observability)")

// elsewhere are metrics of programs that no local cluster runs.
var elsewhere = []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED"}

func TestEveryQueryFindsData(t *testing.T) {
	if !*observe {
		t.Skip("starts a cluster and a Prometheus; make observability runs it")
	}
	if out, err := exec.Command("promtool", "check", "rules", alertsFile).CombinedOutput(); err != nil {
		t.Fatalf("promtool check rules: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	demo := newDemo(ctx, t)
	p := startPrometheus(ctx, t, demo)
	demo.play(ctx, t, p)

	alerts, boards := alertExpressions(t), dashboardExpressions(t)
	for _, e := range slices.Concat(alerts, boards) {
		if _, err := p.query(ctx, e.text); err != nil {
			t.Errorf("%s: %v", e.where, err)
		}
	}
	if t.Failed() {
		return
	}
	wanting := slices.DeleteFunc(slices.Concat(measured(alerts), boards), func(e expression) bool {
		return slices.ContainsFunc(elsewhere, func(metric string) bool { return strings.Contains(e.text, metric) })
	})
	asked, absent := len(wanting), len(alerts)+len(boards)-len(wanting)
	patience, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	err := demo.cluster.Eventually(patience, "data for every query", func(ctx context.Context) error {
		wanting = slices.DeleteFunc(wanting, func(e expression) bool {
			found, err := p.query(ctx, e.text, e.labels...)
			return err == nil && found
		})
		if len(wanting) > 0 {
			return fmt.Errorf("%d without data", len(wanting))
		}
		return nil
	})
	for _, e := range wanting {
		t.Errorf("%s finds nothing with the labels %q: %s", e.where, e.labels, e.text)
	}
	if err != nil {
		t.Error(err)
	}
	summary.Line(t, "observability: %d of %d queries of dashboards and alerts found data, %d are about metrics of DCGM",
		asked-len(wanting), asked, absent)
}
