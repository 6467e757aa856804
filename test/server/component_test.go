package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
)

// available waits until a component says why it is available or not.
func (w world) available(name, reason string) *v1alpha1.DynamoComponentDeployment {
	w.Helper()
	dcd := &v1alpha1.DynamoComponentDeployment{}
	w.eventually(fmt.Sprintf("component %s to say %s", name, reason), func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key(name), dcd); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable); c == nil || c.Reason != reason {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	return dcd
}

// pod makes a pod of a Deployment on a node that is played.
func (w world) pod(of string, status corev1.ContainerStatus) *corev1.Pod {
	w.Helper()
	template := get(w, &appsv1.Deployment{}, of).Spec.Template
	main := template.Spec.Containers[0]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: of, Labels: template.Labels}}
	pod.Spec = corev1.PodSpec{NodeName: "elsewhere", Containers: []corev1.Container{{Name: main.Name, Image: main.Image, StartupProbe: main.StartupProbe}}}
	w.create(pod)
	w.plays(pod, status)
	return pod
}

func (w world) plays(pod *corev1.Pod, status corev1.ContainerStatus) {
	w.Helper()
	status.Name, status.Image = pod.Spec.Containers[0].Name, pod.Spec.Containers[0].Image
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{status}
	if err := cluster.Client.Status().Update(w.ctx, pod); err != nil {
		w.Fatal(errors.Join(errors.New("play a node"), err))
	}
}

// allowPods makes the account that pods need.
func (w world) allowPods() {
	w.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default"}})
}

// TestAPodWakesTheComponentThatItNames, also where a graph is named like its service
// and where a component that stands alone has another service name than its own.
func TestAPodWakesTheComponentThatItNames(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	w.allowPods()
	w.create(w.graph("decode", "decode"))
	alone := w.component("alone")
	alone.Spec.ServiceName = "other"
	w.create(alone)
	missing := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "example.com/at-rest:1: not found"}}}
	for _, name := range []string{"decode-decode", "alone"} {
		w.runs(name, 1, false)
		w.available(name, v1alpha1.ReasonDeploymentNotReady)
	}
	w.quiet()
	for _, name := range []string{"decode-decode", "alone"} {
		w.pod(name, missing) // nothing else changes
		w.available(name, string(diagnosis.ImageNotFound))
	}
}

// TestAComponentSaysWhichPodsAreItsOwnAndThatItIsReady to clients that know it by the
// names of earlier operators.
func TestAComponentSaysWhichPodsAreItsOwnAndThatItIsReady(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	w.allowPods()
	w.create(w.graph("g", "decode", "front"))
	for _, name := range []string{"g-decode", "g-front"} {
		w.runs(name, 1, true)
	}
	w.pod("g-decode", corev1.ContainerStatus{})
	w.pod("g-front", corev1.ContainerStatus{})
	dcd := w.available("g-decode", v1alpha1.ReasonDeploymentReady)
	if !meta.IsStatusConditionTrue(dcd.Status.Conditions, v1alpha1.ConditionDynamoComponentReady) {
		t.Errorf("conditions %v", dcd.Status.Conditions)
	}
	var pods corev1.PodList
	if err := cluster.Client.List(w.ctx, &pods, client.InNamespace(w.namespace), client.MatchingLabels(dcd.Status.PodSelector)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 || pods.Items[0].Name != "g-decode" {
		t.Errorf("%v selects %d pods", dcd.Status.PodSelector, len(pods.Items))
	}
	w.runs("g-decode", 1, false)
	if dcd = w.available("g-decode", v1alpha1.ReasonDeploymentNotReady); meta.IsStatusConditionTrue(dcd.Status.Conditions, v1alpha1.ConditionDynamoComponentReady) {
		t.Errorf("conditions %v", dcd.Status.Conditions)
	}
}

// TestAModelThatLoadsWithinItsStartupProbeIsNotStuck, though its Deployment has given
// up waiting; one that has ended and starts again is.
func TestAModelThatLoadsWithinItsStartupProbeIsNotStuck(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	w.allowPods()
	dgd := w.graph("g", "decode")
	dgd.Spec.Services["decode"].ExtraPodSpec.MainContainer.StartupProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"loaded"}}}, PeriodSeconds: 10, FailureThreshold: 720,
	}
	w.create(dgd)
	w.runs("g-decode", 1, false)
	loading := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, Started: new(false)}
	pod := w.pod("g-decode", loading)
	d := get(w, &appsv1.Deployment{}, "g-decode")
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	if err := cluster.Client.Status().Update(w.ctx, d); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	if dcd := w.available("g-decode", v1alpha1.ReasonDeploymentNotReady); meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionProgressing) != nil {
		t.Errorf("conditions %v", dcd.Status.Conditions)
	}
	w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageDeploying)

	loading.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: metav1.Now()}
	loading.RestartCount = 1
	w.plays(pod, loading)
	w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageFailed)
}

// TestAServiceThatChoosesItsDiscoveryHasTheAccountThatItRunsUnder, whatever the
// operator and the other services use.
func TestAServiceThatChoosesItsDiscoveryHasTheAccountThatItRunsUnder(t *testing.T) {
	w := newWorld(t)
	w.operate(silent + "discovery: {backend: etcd}\n")
	dgd := w.graph("g", "chooses", "follows")
	dgd.Spec.Services["chooses"].Annotations = map[string]string{v1alpha1.AnnotationDiscoveryBackend: v1alpha1.DiscoveryBackendKubernetes}
	w.create(dgd)
	alone := w.component("alone")
	alone.Spec.Annotations = map[string]string{v1alpha1.AnnotationDiscoveryBackend: v1alpha1.DiscoveryBackendKubernetes}
	w.create(alone)
	for _, name := range []string{"g-chooses", "alone"} {
		account := exists(w, &appsv1.Deployment{}, name).Spec.Template.Spec.ServiceAccountName
		if account == "" || account == "default" {
			t.Errorf("%s runs as %q", name, account)
		}
		exists(w, &corev1.ServiceAccount{}, account)
	}
	if account := exists(w, &appsv1.Deployment{}, "g-follows").Spec.Template.Spec.ServiceAccountName; account != "default" {
		t.Errorf("g-follows runs as %q", account)
	}
}

// TestEveryObjectIsLookedAtAgainAndNothingIsWritten, once in controller.resync: what
// an event has missed has an end.
func TestEveryObjectIsLookedAtAgainAndNothingIsWritten(t *testing.T) {
	w := newWorld(t)
	o := w.operate(fmt.Sprintf("server: {metricsAddress: %q, healthAddress: \"\"}\ncontroller: {resync: 1m}\n", metricsHost+":0"))
	url := "http://" + w.listens(o, metricsHost)[metricsHost] + "/metrics"
	w.create(w.graph("g", "decode"))
	w.runs("g-decode", 1, true)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	w.quiet()
	mark := w.mark()
	before := w.passes(url)
	w.eventually("graph and component to be looked at again", func(context.Context) error {
		for kind, n := range w.passes(url) {
			if n <= before[kind] {
				return fmt.Errorf("%s: %d passes as before", kind, n)
			}
		}
		return nil
	})
	if writes := w.byOperator(mark); len(writes) > 0 {
		t.Errorf("writes %v", writes)
	}
}

// passes reads how often graphs and components were reconciled.
func (w world) passes(url string) map[string]int {
	w.Helper()
	counts := map[string]int{"dynamographdeployment": 0, "dynamocomponentdeployment": 0}
	for line := range strings.Lines(w.answers(http.StatusOK, url, "")) {
		for kind := range counts {
			if series, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(series, "controller_runtime_reconcile_total{controller=\""+kind+"\"") {
				n, err := strconv.Atoi(value)
				if err != nil {
					w.Fatal(err)
				}
				counts[kind] += n
			}
		}
	}
	return counts
}
