// Package probe asks a container how it is, and keeps count of the answers.
//
// Run is the timing of one probe (delay, period, thresholds), Prober is how the
// question is put. Neither knows what an answer leads to. Probes that would run
// a program inside the container are refused: nothing of a pod is executed here
// but the binary that plays it.
package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	"k8s.io/kubernetes/pkg/probe/grpc"
	"k8s.io/kubernetes/pkg/probe/http"
	"k8s.io/kubernetes/pkg/probe/tcp"
)

// Check asks once. A nil error is a success; the error is what an event says.
type Check func() error

// eager is the first pause between questions to a container that has just
// started; it doubles from one to the next.
const eager = 100 * time.Millisecond

// Run asks until ctx ends or turn returns false. Each failure is told to failed,
// and each change of the verdict (success or failure as often in a row as its
// threshold says; none at first) to turn.
//
// A kubelet puts its first question at some moment of the first period after
// the initial delay. Run makes use of that: during this period it asks again and
// again until it hears yes, and does not hold a no against the container. So a
// container is found ready when it is, and none is condemned for not listening
// in its first millisecond.
func Run(ctx context.Context, spec *corev1.Probe, started time.Time, check Check, failed func(error), turn func(ok bool) (more bool)) {
	period := seconds(max(1, spec.PeriodSeconds))
	opens := started.Add(seconds(spec.InitialDelaySeconds))
	if now := time.Now(); opens.Before(now) {
		opens = now
	}
	counts, pause := opens.Add(period), eager
	timer := time.NewTimer(time.Until(opens))
	defer timer.Stop()
	var verdict, row int // +n successes, -n failures in a row; verdict is the sign last told
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		asked := time.Now()
		err := check()
		if ctx.Err() != nil {
			return // the container ended while we asked: the answer means nothing
		}
		if err != nil && row == 0 && asked.Before(counts) {
			timer.Reset(min(pause, time.Until(counts)))
			pause *= 2
			continue
		}
		if err != nil {
			failed(err)
			row = min(row, 0) - 1
		} else {
			row = max(row, 0) + 1
		}
		told := verdict
		switch {
		case row >= int(max(1, spec.SuccessThreshold)):
			verdict = 1
		case -row >= int(max(1, spec.FailureThreshold)):
			verdict = -1
		}
		if verdict != told && !turn(verdict == 1) {
			return
		}
		timer.Reset(time.Until(asked.Add(period)))
	}
}

// Prober puts the questions.
type Prober struct {
	http http.Prober
	tcp  tcp.Prober
	grpc grpc.Prober
}

// NewProber makes a Prober; one serves all containers.
func NewProber() *Prober {
	return &Prober{http: http.New(false), tcp: tcp.New(), grpc: grpc.New()}
}

// Executable reports whether the probe wants a program to be run.
func Executable(spec *corev1.Probe) bool { return spec != nil && spec.Exec != nil }

// patience is how long an answer may take at least. All nodes and what runs on
// them share one machine: an answer that is late tells of the machine, and must
// not end a container that is well.
const patience = 20 * time.Second

// Check asks container c, whose process listens on host. A host written in the
// probe is passed over: seen from inside a pod it could only be the pod itself.
func (p *Prober) Check(spec *corev1.Probe, c *corev1.Container, host string) error {
	timeout := seconds(max(1, spec.TimeoutSeconds))
	switch {
	case spec.HTTPGet != nil:
		return p.Get(spec.HTTPGet, c, host, max(timeout, patience))
	case spec.TCPSocket != nil:
		port, err := probe.ResolveContainerPort(spec.TCPSocket.Port, c)
		if err != nil {
			return err
		}
		return answer(p.tcp.Probe(host, port, timeout))
	case spec.GRPC != nil:
		service := ""
		if spec.GRPC.Service != nil {
			service = *spec.GRPC.Service
		}
		return answer(p.grpc.Probe(host, service, int(spec.GRPC.Port), timeout, grpc.ProbeOptions{}))
	case spec.Exec != nil:
		return nil
	}
	return errors.New("the probe names no way to ask")
}

// Get sends the GET request of a probe or of a lifecycle hook.
func (p *Prober) Get(get *corev1.HTTPGetAction, c *corev1.Container, host string, timeout time.Duration) error {
	here := *get
	here.Host = ""
	req, err := http.NewRequestForHTTPGetAction(&here, c, host, "probe")
	if err != nil {
		return err
	}
	return answer(p.http.Probe(req, timeout))
}

func answer(result probe.Result, message string, err error) error {
	switch {
	case err != nil:
		return err
	case result == probe.Success, result == probe.Warning:
		return nil
	}
	return fmt.Errorf("%s", message)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
