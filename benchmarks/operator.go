package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// process is the operator beside the cluster, with an administrator's rights:
// what it may do is not what is measured.
type process struct {
	command *exec.Cmd
	metrics string
	ended   chan struct{}
}

func startOperator(ctx context.Context, s *stage) (*process, error) {
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "operator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(cmp.Or(s.program, filepath.Join(s.bin, "dynamo-operator")), "--metrics-bind-address", metrics, "--health-probe-bind-address", health)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig, "DYNAMO_GUARDS_OFF="+strings.Join(s.off, ","))
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command: command, metrics: "http://" + metrics + "/metrics", ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // it is stopped by a signal
		close(p.ended)
	}()
	err = s.until(ctx, "the operator to be ready", func(context.Context) error {
		select {
		case <-p.ended:
			return errors.New("the operator has ended: see " + log.Name())
		default:
		}
		response, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
	return p, err
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

func (p *process) stop() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

// usage is what a process has used since it began.
type usage struct {
	cpu time.Duration
	// peak is its largest resident size.
	peak int64
}

// usage reads the kernel's own account.
func (p *process) usage() (usage, error) {
	pid := strconv.Itoa(p.command.Process.Pid)
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return usage{}, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, in hundredths
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return usage{}, err
		}
		ticks += n
	}
	u := usage{cpu: time.Duration(ticks) * 10 * time.Millisecond}
	status, err := os.Open("/proc/" + pid + "/status")
	if err != nil {
		return u, err
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			var kib int64
			if _, err := fmt.Sscan(text, &kib); err != nil {
				return u, err
			}
			u.peak = kib << 10
		}
	}
	return u, nil
}

// passes are the durations of reconciles that the operator has counted so far.
func (p *process) passes() (map[float64]float64, error) {
	families, err := p.scrape()
	if err != nil {
		return nil, err
	}
	buckets := map[float64]float64{}
	for _, series := range families["dynamo_operator_reconcile_duration_seconds"].GetMetric() {
		for _, bucket := range series.GetHistogram().GetBucket() {
			buckets[bucket.GetUpperBound()] += float64(bucket.GetCumulativeCount())
		}
	}
	return buckets, nil
}

// depth is how many objects stand in line now.
func (p *process) depth() (int, error) {
	families, err := p.scrape()
	if err != nil {
		return 0, err
	}
	n := 0.0
	for _, series := range families["workqueue_depth"].GetMetric() {
		n += series.GetGauge().GetValue()
	}
	return int(n), nil
}

func (p *process) scrape() (map[string]*dto.MetricFamily, error) {
	response, err := http.Get(p.metrics)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// watchDepth looks at the line again and again until the function that it
// returns is called, which says how long the line was at most. It looks once a
// second at first and less often in a long phase: to be asked costs an operator of
// thousands of graphs a noticeable part of a second.
func (p *process) watchDepth(ctx context.Context) func() int {
	ctx, cancel := context.WithCancel(ctx)
	most := make(chan int, 1)
	go func() {
		longest := 0
		for next := time.Second; ; next += next / 10 {
			select {
			case <-ctx.Done():
				most <- longest
				return
			case <-time.After(next):
				if n, err := p.depth(); err == nil { // one that has ended has no line
					longest = max(longest, n)
				}
			}
		}
	}()
	return func() int {
		cancel()
		return <-most
	}
}

// serverCPU is what the API server has used since it began, by its own account.
func (s *stage) serverCPU(ctx context.Context) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cluster.Config.Host+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); found {
			seconds, err := strconv.ParseFloat(text, 64)
			return time.Duration(seconds * float64(time.Second)), err
		}
	}
	return 0, fmt.Errorf("the API server does not say what it used: %s", response.Status)
}
