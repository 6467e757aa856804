package worker

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/logfile"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/process"
)

// role tells the kinds of containers apart.
type role struct {
	init    bool // runs once, to success, before the next one
	sidecar bool // starts like an init container, then goes on
}

// container plays one container of the pod, run after run.
type container struct {
	w    *Worker
	name string
	role role

	started chan struct{} // closed when a run has started for the first time
	once    sync.Once
}

func (w *Worker) container(spec *corev1.Container, r role) *container {
	return &container{w: w, name: spec.Name, role: r, started: make(chan struct{})}
}

// live runs the container until it has ended for good, and tells how; nil if it
// never ran. Once stop ends, it asks the process to end, and no new run begins.
func (c *container) live(stop context.Context) *corev1.ContainerStateTerminated {
	if end := c.status().State.Terminated; end != nil && !c.restarts(end.ExitCode) {
		return end // from before this worker
	}
	for ends := 0; ; {
		l, ok := c.create(stop)
		if !ok {
			return c.status().State.Terminated
		}
		began := time.Now()
		end := c.play(stop, l)
		if stop.Err() != nil || !c.restarts(end.ExitCode) {
			return end
		}
		if c.w.host.Backoff.forgiven(time.Since(began)) {
			ends = 0
		}
		ends++
		if !c.backOff(stop, c.w.host.Backoff.after(ends)) {
			return end
		}
	}
}

// restarts is the restart policy.
func (c *container) restarts(exitCode int32) bool {
	pod := c.w.object()
	policy := pod.Spec.RestartPolicy
	if own := c.spec(pod).RestartPolicy; own != nil {
		policy = corev1.RestartPolicy(*own)
	}
	switch {
	case c.role.init && exitCode == 0, policy == corev1.RestartPolicyNever:
		return false
	case policy == corev1.RestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

// backOff waits before the next run; false if the pod stops meanwhile.
func (c *container) backOff(stop context.Context, d time.Duration) bool {
	if d == 0 {
		return stop.Err() == nil
	}
	pod := c.w.object()
	full := fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
	c.w.event(c.spec(pod), corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s", c.name, full)
	c.update(func(cs *containerStatus) {
		c.retire(cs)
		cs.State = waiting("CrashLoopBackOff", fmt.Sprintf("back-off %v restarting failed container=%s pod=%s", d, c.name, full))
	})
	pause(stop, d)
	return stop.Err() == nil
}

// play is one run, from start to end.
func (c *container) play(stop context.Context, l *launch) *corev1.ContainerStateTerminated {
	w := c.w
	log, err := logfile.Create(l.logPath)
	if err != nil {
		return c.failed(l, err)
	}
	l.process.Stdout, l.process.Stderr = log.Stdout(), log.Stderr()
	w.event(&l.spec, corev1.EventTypeNormal, "Created", "Container created")
	proc, err := c.launch(l)
	if err != nil {
		fmt.Fprintf(log.Stderr(), "localcluster: %v\n", err)
		closeLog(log, l)
		return c.failed(l, err)
	}
	began := time.Now()
	w.event(&l.spec, corev1.EventTypeNormal, "Started", "Container started")
	c.update(func(cs *containerStatus) {
		c.begin(cs, l)
		cs.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now()}}
	})

	health, sick := c.attend(l, began)
	forced := c.await(stop, l, proc, sick)
	health.cancel()
	closeLog(log, l)

	code, reason := proc.ExitCode(), ""
	if forced != nil {
		code, reason = forced.code, forced.reason
	}
	return c.ended(l, code, reason, "")
}

// await returns at the end of the process, which it brings about if need be.
// The result says what the end must look like if a fault caused it.
func (c *container) await(stop context.Context, l *launch, proc process.Process, sick <-chan diagnosis) *forcedEnd {
	w := c.w
	var crash <-chan time.Time
	if l.faults.end != nil {
		timer := time.NewTimer(l.faults.end.after)
		defer timer.Stop()
		crash = timer.C
	}
	for {
		changed := w.changed.heard()
		select {
		case <-proc.Done():
			return nil
		case <-stop.Done():
			w.event(&l.spec, corev1.EventTypeNormal, "Killing", "Stopping container %s", c.name)
			c.terminate(w.kill, l, proc)
			return nil
		case d := <-sick:
			w.event(&l.spec, corev1.EventTypeNormal, "Killing", "%s", d.verdict)
			c.terminateWithin(d.grace, l, proc)
			return nil
		case <-crash:
			proc.Signal(syscall.SIGKILL)
			<-proc.Done()
			return l.faults.end
		case <-changed:
			if pod := w.object(); c.spec(pod).Image != l.spec.Image {
				w.event(&l.spec, corev1.EventTypeNormal, "Killing", "Container %s definition changed, will be restarted", c.name)
				c.terminateWithin(graceOf(pod), l, proc)
				return nil
			}
		}
	}
}

// launch starts whatever plays the container.
func (c *container) launch(l *launch) (process.Process, error) {
	start := func() (process.Process, error) {
		switch {
		case l.faults.start != "":
			return nil, fmt.Errorf("failed to create containerd task: failed to create shim task: OCI runtime create failed: "+
				"runc create failed: unable to start container process: error during container init: %s: unknown", l.faults.start)
		case l.program.Played():
			return c.w.host.Launcher.Launch(l.process)
		case l.runsToCompletion:
			return process.Ended(), nil
		}
		return process.Idle(), nil
	}
	if l.faults.slowStart == 0 {
		return start()
	}
	return process.Later(l.faults.slowStart, func() (process.Process, error) {
		p, err := start()
		if err != nil {
			fmt.Fprintf(l.process.Stderr, "localcluster: %v\n", err)
		}
		return p, err
	}), nil
}

// terminateWithin ends the process for a reason of its own, which the pod's end
// may overtake.
func (c *container) terminateWithin(grace time.Duration, l *launch, proc process.Process) {
	kill, cancel := context.WithTimeout(c.w.kill, grace)
	defer cancel()
	c.terminate(kill, l, proc)
}

// terminate asks the process to end, and insists once kill ends.
func (c *container) terminate(kill context.Context, l *launch, proc process.Process) {
	c.beforeStop(kill, l, proc)
	proc.Signal(syscall.SIGTERM)
	select {
	case <-proc.Done():
		return
	case <-kill.Done():
	}
	proc.Signal(syscall.SIGKILL)
	<-proc.Done()
}

// failed is the end of a run that could not begin.
func (c *container) failed(l *launch, err error) *corev1.ContainerStateTerminated {
	c.w.event(&l.spec, corev1.EventTypeWarning, "Failed", "Error: %v", err)
	c.update(func(cs *containerStatus) {
		c.begin(cs, l)
		cs.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now()}}
	})
	return c.ended(l, 128, "StartError", err.Error())
}

// ended records the end of a run.
func (c *container) ended(l *launch, code int, reason, message string) *corev1.ContainerStateTerminated {
	if reason == "" {
		reason = "Error"
		if code == 0 {
			reason = "Completed"
		}
	}
	if message == "" {
		message = lastWords(l, code)
	}
	var end *corev1.ContainerStateTerminated
	c.update(func(cs *containerStatus) {
		end = &corev1.ContainerStateTerminated{
			ExitCode: int32(code), Reason: reason, Message: message,
			FinishedAt: now(), ContainerID: cs.ContainerID,
		}
		if cs.State.Running != nil {
			end.StartedAt = cs.State.Running.StartedAt
		}
		cs.State = corev1.ContainerState{Terminated: end}
		cs.Ready, cs.Started = false, new(false)
	})
	return end
}

// status is a copy of what is recorded.
func (c *container) status() containerStatus {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.w.containers[c.name]
}

// update changes what is recorded, and asks for a report.
func (c *container) update(change func(*containerStatus)) {
	c.w.mu.Lock()
	cs, ok := c.w.containers[c.name]
	if !ok {
		cs = containerStatus{Name: c.name, Image: c.spec(c.w.pod).Image, Started: new(false)}
	}
	change(&cs)
	c.w.containers[c.name] = cs
	c.w.mu.Unlock()
	c.w.poke()
}

// begin records a new run.
func (c *container) begin(cs *containerStatus, l *launch) {
	c.retire(cs)
	cs.Image, cs.ImageID = l.spec.Image, l.spec.Image
	cs.RestartCount = l.number
	cs.ContainerID = fmt.Sprintf("localcluster://%s-%s-%d", c.w.pod.UID, c.name, l.number)
	cs.Ready, cs.Started = false, new(false)
}

// retire makes room for a new state: an end becomes the last one.
func (c *container) retire(cs *containerStatus) {
	if cs.State.Terminated != nil {
		cs.LastTerminationState = corev1.ContainerState{Terminated: cs.State.Terminated}
	}
}

// next is the number of the next run.
func (c *container) next() int32 {
	if cs := c.status(); cs.ContainerID != "" {
		return cs.RestartCount + 1
	}
	return 0
}

// spec is the container in this version of the pod.
func (c *container) spec(pod *corev1.Pod) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == c.name {
				return &list[i]
			}
		}
	}
	// The API lets nobody take a container away.
	panic(fmt.Sprintf("pod %s/%s lost its container %s", pod.Namespace, pod.Name, c.name))
}

func (c *container) dir() string { return filepath.Join(c.w.dir, "containers", c.name) }

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}
