package server

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rollouts plays the controller of Deployments in one world: what is asked for
// runs at once, or makes no progress for as long as it is given.
type rollouts struct {
	world
	mu sync.Mutex
	// stalled are Deployments that run on as they are and come to nothing in any
	// later generation.
	stalled map[string]int64
}

// rollOut starts the part. It ends with the test.
func (w world) rollOut() *rollouts {
	w.Helper()
	r := &rollouts{world: w, stalled: map[string]int64{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			if err := r.pass(); err != nil && !conflicting(err) && w.ctx.Err() == nil {
				w.Errorf("play the controller of Deployments: %v", err)
				return
			}
			select {
			case <-tick.C:
			case <-w.Context().Done():
				return
			}
		}
	}()
	w.Cleanup(func() { <-done }) // the test's context ends before its cleanups run
	return r
}

// stall has a Deployment stay as it is now.
func (r *rollouts) stall(name string) {
	r.Helper()
	d := get(r.world, &appsv1.Deployment{}, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled[name] = d.Generation
}

// release has it follow again.
func (r *rollouts) release(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stalled, name)
}

func (r *rollouts) pass() error {
	var list appsv1.DeploymentList
	if err := cluster.Client.List(r.ctx, &list, client.InNamespace(r.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		d := &list.Items[i]
		status := r.statusOf(d)
		if equality.Semantic.DeepEqual(d.Status, status) {
			continue
		}
		d.Status = status
		if err := cluster.Client.Status().Update(r.ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// statusOf is what the controller would write, with the times left out.
func (r *rollouts) statusOf(d *appsv1.Deployment) appsv1.DeploymentStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	replicas := *d.Spec.Replicas
	progressing := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: metav1.Unix(1, 0), LastTransitionTime: metav1.Unix(1, 0)}
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	if at, stalled := r.stalled[d.Name]; stalled && d.Generation > at {
		// A new pod beside the old one, which goes on serving.
		status.Replicas, status.UnavailableReplicas = replicas+1, 1
		progressing.Status, progressing.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	}
	status.Conditions = []appsv1.DeploymentCondition{progressing}
	return status
}
