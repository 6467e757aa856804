package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/probe"
)

// diagnosis is why a run must end, and how long it may take.
type diagnosis struct {
	verdict string
	grace   time.Duration
}

// health is the probes of one run.
type health struct {
	c      *container
	l      *launch
	began  time.Time
	ctx    context.Context
	cancel context.CancelFunc
	sick   chan diagnosis
}

// attend begins to look after a run. What it finds fatal comes over the channel.
func (c *container) attend(l *launch, began time.Time) (*health, <-chan diagnosis) {
	h := &health{c: c, l: l, began: began, sick: make(chan diagnosis, 1)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	go h.watch()
	return h, h.sick
}

// watch asks the startup probe first; the others wait for its success.
func (h *health) watch() {
	spec := &h.l.spec
	if err := h.c.afterStart(h.ctx, h.l); err != nil {
		h.c.w.event(spec, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: %v", err)
		h.diagnose("FailedPostStartHook", nil)
		return
	}
	startup, readiness, liveness := spec.StartupProbe, spec.ReadinessProbe, spec.LivenessProbe
	if !h.l.program.Played() {
		startup, readiness, liveness = nil, nil, nil // nobody there to answer
	}
	if startup != nil {
		up := false
		h.run("Startup", startup, func(ok bool) bool { up = ok; return false })
		if h.ctx.Err() != nil {
			return
		}
		if !up {
			h.diagnose(fmt.Sprintf("Container %s failed startup probe, will be restarted", spec.Name), startup)
			return
		}
	}
	if readiness == nil && h.l.faults.neverReady {
		readiness = &corev1.Probe{PeriodSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1}
	}
	h.mark(func(cs *containerStatus) { cs.Started, cs.Ready = new(true), readiness == nil })
	h.c.once.Do(func() { close(h.c.started) })
	if readiness != nil {
		go h.run("Readiness", readiness, func(ok bool) bool {
			h.mark(func(cs *containerStatus) { cs.Ready = ok })
			return true
		})
	}
	if liveness != nil {
		go h.run("Liveness", liveness, func(ok bool) bool {
			if !ok {
				h.diagnose(fmt.Sprintf("Container %s failed liveness probe, will be restarted", spec.Name), liveness)
			}
			return ok
		})
	}
}

func (h *health) run(name string, p *corev1.Probe, turn func(bool) bool) {
	w, spec := h.c.w, &h.l.spec
	if probe.Executable(p) {
		w.warn("exec/"+spec.Name+"/"+name, spec, "ExecNotRun", "The %s probe would run a program in the container; here it always succeeds", name)
	}
	check := func() error {
		if name == "Readiness" {
			if f, _ := faultsOf(w.object(), spec.Name); f.neverReady {
				return errors.New("asked for by annotation " + FaultNeverReady)
			}
			if p.ProbeHandler == (corev1.ProbeHandler{}) {
				return nil
			}
		}
		return w.host.Prober.Check(p, spec, w.Host())
	}
	failed := func(err error) {
		w.event(spec, corev1.EventTypeWarning, "Unhealthy", "%s probe failed: %v", name, err)
	}
	probe.Run(h.ctx, p, h.began, check, failed, turn)
}

// mark records a finding, unless the run is over.
func (h *health) mark(change func(*containerStatus)) {
	h.c.update(func(cs *containerStatus) {
		if h.ctx.Err() == nil {
			change(cs)
		}
	})
}

// diagnose condemns the run; the probe may have a grace period of its own.
func (h *health) diagnose(verdict string, p *corev1.Probe) {
	grace := graceOf(h.c.w.object())
	if p != nil && p.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*p.TerminationGracePeriodSeconds) * time.Second
	}
	select {
	case h.sick <- diagnosis{verdict, grace}:
	default: // condemned already
	}
}
