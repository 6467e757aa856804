package observability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// prometheus is a real one, on loopback.
type prometheus struct{ url string }

// The operator's own series name the namespace that they are about; those of
// graphs get theirs from where they were found, as from the chart's monitors.
const configuration = `
global: {scrape_interval: 1s}
rule_files: [%[1]q]
scrape_configs:
  - job_name: dynamo-operator
    honor_labels: true
    proxy_url: %[2]s
    file_sd_configs: [{files: [%[3]q], refresh_interval: 1s}]
  - job_name: dynamo-graphs
    proxy_url: %[2]s
    file_sd_configs: [{files: [%[4]q], refresh_interval: 1s}]
`

// startPrometheus runs it until the test ends, against the pods there are at any
// time.
func startPrometheus(ctx context.Context, t *testing.T, d *demo) *prometheus {
	t.Helper()
	dir := t.TempDir()
	operator, graphs := filepath.Join(dir, "operator.json"), filepath.Join(dir, "graphs.json")
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, rules, d.proxy(t), operator, graphs), 0o644); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatalf("start prometheus: %v", err)
	}
	done, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.discover(done, t, operator, graphs)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		_ = process.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = process.Wait()                          // how does not matter any more
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("prometheus said:\n%s", text[max(0, len(text)-4096):])
		}
	})
	p := &prometheus{url: "http://" + address}
	if err := d.cluster.Eventually(ctx, "prometheus to find the operator", func(ctx context.Context) error {
		found, err := p.query(ctx, `up{job="dynamo-operator"} == 1`)
		if err == nil && !found {
			err = errors.New("not scraped yet")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// query asks for an expression's value now, and tells whether there is any that
// is a number and has the labels.
func (p *prometheus) query(ctx context.Context, expr string, labels ...string) (found bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(expr), http.NoBody)
	if err != nil {
		return false, err
	}
	hc := http.Client{Timeout: time.Minute}
	response, err := hc.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return false, fmt.Errorf("read the answer to %s: %s: %w", expr, response.Status, err)
	}
	if answer.Status != "success" {
		return false, fmt.Errorf("query %s: %s", expr, answer.Error)
	}
	for _, sample := range answer.Data.Result {
		if slices.ContainsFunc(labels, func(label string) bool { return sample.Metric[label] == "" }) {
			continue
		}
		text, _ := sample.Value[1].(string)
		if value, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(value) {
			return true, nil
		}
	}
	return false, nil
}
