package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/lws"
)

// TestAClaimThatServicesMountAndNobodyMakesIsNamed, until somebody makes it.
func TestAClaimThatServicesMountAndNobodyMakesIsNamed(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "decode")
	dgd.Spec.PVCs = []v1alpha1.PVC{{Name: "models"}, {Name: "unused"}}
	dgd.Spec.Services["decode"].VolumeMounts = []v1alpha1.VolumeMount{{Name: "models", MountPoint: "/models"}}
	w.create(dgd)
	c := w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonClaimNotFound)
	if !strings.Contains(c.Message, "PersistentVolumeClaim models ") || strings.Contains(c.Message, "unused") {
		t.Errorf("condition %v", c)
	}
	exists(w, &appsv1.Deployment{}, "g-decode") // nothing waits for the claim but its pods
	w.warned("g", "spec.pvcs[1]: has no effect; no service mounts unused")
	w.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "models"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonServicesNotReady)
}

// TestGroupsAreScheduledByWhomTheUserChose: Volcano is told of gangs that it is to
// place, and of no others.
func TestGroupsAreScheduledByWhomTheUserChose(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	own, ours := w.groups("own", 1), w.groups("ours", 1)
	own.Spec.Services["decode"].ExtraPodSpec.PodSpec = &corev1.PodSpec{SchedulerName: "their-scheduler"}
	w.create(own)
	w.create(ours)
	for graph, scheduler := range map[string]string{"own": "their-scheduler", "ours": "volcano"} {
		set := exists(w, &lwsv1.LeaderWorkerSet{}, graph+"-decode-0").Spec.LeaderWorkerTemplate
		for _, template := range []corev1.PodTemplateSpec{*set.LeaderTemplate, set.WorkerTemplate} {
			gang := template.Annotations[v1alpha1.AnnotationPodGroup] != ""
			if template.Spec.SchedulerName != scheduler || gang != (scheduler == "volcano") {
				t.Errorf("graph %s: scheduler %q, in a gang: %v", graph, template.Spec.SchedulerName, gang)
			}
		}
		err := cluster.Client.Get(w.ctx, w.key(graph+"-decode-0"), &lws.PodGroup{})
		if missing := apierrors.IsNotFound(err); missing != (graph == "own") || (err != nil && !missing) {
			t.Errorf("PodGroup of graph %s: %v", graph, err)
		}
	}
}

// TestGroupsThatAreRecreatedTakeAChangeAtOnce, while others take it one after the
// other.
func TestGroupsThatAreRecreatedTakeAChangeAtOnce(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.groups("g", 2)
	dgd.Spec.Services["decode"].Annotations = map[string]string{v1alpha1.AnnotationDeploymentStrategy: "Recreate"}
	w.create(dgd)
	w.group("g-decode-0", 1, true)
	w.group("g-decode-1", 1, true)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	w.merge(dgd, `{"spec":{"services":{"decode":{"extraPodSpec":{"mainContainer":{"image":"example.com/at-rest:2"}}}}}}`)
	w.eventually("both groups at generation 2", func(ctx context.Context) error {
		for _, name := range []string{"g-decode-0", "g-decode-1"} {
			set := &lwsv1.LeaderWorkerSet{}
			if err := cluster.Client.Get(ctx, w.key(name), set); err != nil {
				return err
			}
			if set.Generation != 2 {
				return fmt.Errorf("%s is at %d", name, set.Generation)
			}
		}
		return nil
	})
}

// TestACompilationCacheWithoutAPathIsTheEnginesOwn, and the engine is told of it.
func TestACompilationCacheWithoutAPathIsTheEnginesOwn(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "decode")
	dgd.Spec.BackendFramework = v1alpha1.BackendFrameworkVLLM
	dgd.Spec.Services["decode"].VolumeMounts = []v1alpha1.VolumeMount{{Name: "cache", UseAsCompilationCache: true}}
	w.create(dgd)
	main := exists(w, &appsv1.Deployment{}, "g-decode").Spec.Template.Spec.Containers[0]
	const path = "/root/.cache/vllm"
	mounted := slices.ContainsFunc(main.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "cache" && m.MountPath == path })
	told := slices.ContainsFunc(main.Env, func(v corev1.EnvVar) bool { return v.Name == "VLLM_CACHE_ROOT" && v.Value == path })
	if !mounted || !told {
		t.Errorf("mounts %v, environment %v", main.VolumeMounts, main.Env)
	}
}

// TestAPortOfTheUsersIsAdmitted under the name of one of ours: a server refuses two of
// one name.
func TestAPortOfTheUsersIsAdmitted(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "frontend")
	dgd.Spec.Services["frontend"].ComponentType = v1alpha1.ComponentTypeFrontend
	dgd.Spec.Services["frontend"].ExtraPodSpec.MainContainer.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	w.create(dgd)
	got := exists(w, &appsv1.Deployment{}, "g-frontend").Spec.Template.Spec.Containers[0].Ports
	if len(got) != 1 || got[0].Name != "http" || got[0].ContainerPort != 8080 {
		t.Errorf("ports %v", got)
	}
	if target := exists(w, &corev1.Service{}, "g-frontend").Spec.Ports[0].TargetPort; target.StrVal != "http" {
		t.Errorf("the Service leads to %v", target)
	}
}

// TestWhatHasNoEffectIsSaid by the operator, for those who were told by no webhook.
func TestWhatHasNoEffectIsSaid(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.groups("g", 1)
	dgd.Annotations = map[string]string{v1alpha1.AnnotationKaiQueue: "mine"}
	dgd.Spec.Services["decode"].Annotations = map[string]string{v1alpha1.AnnotationMaxSurge: "1"}
	w.create(dgd)
	w.warned("g", "metadata.annotations[nvidia.com/kai-scheduler-queue]: has no effect",
		"spec.services[decode].annotations[nvidia.com/deployment-rolling-update-max-surge]: has no effect")
	far := w.graph("far", "decode")
	far.Spec.Experimental = &v1alpha1.GraphExperimental{KVTransferPolicy: &v1alpha1.KVTransferPolicy{LabelKey: "rack", Domain: "rack"}}
	w.create(far)
	w.warned("far", "spec.experimental.kvTransferPolicy.labelKey: workers find no place")
	dcd := w.component("alone")
	dcd.Spec.Autoscaling = &v1alpha1.Autoscaling{}
	w.create(dcd)
	w.warned("alone", "spec.autoscaling: is no longer used")
}

// groups is a graph of one service that spans nodes.
func (w world) groups(name string, replicas int32) *v1alpha1.DynamoGraphDeployment {
	dgd := w.graph(name, "decode")
	decode := dgd.Spec.Services["decode"]
	decode.Replicas, decode.Multinode = &replicas, &v1alpha1.Multinode{NodeCount: 2}
	decode.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	return dgd
}

// warned waits for an event about an object that says all of some words.
func (w world) warned(name string, words ...string) {
	w.Helper()
	w.eventually("an event about "+name, func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Name == name && e.Reason == "SpecWarning" && e.Type == corev1.EventTypeWarning &&
				!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(e.Note, word) }) {
				return nil
			}
		}
		return errors.New("none says " + strings.Join(words, " and "))
	})
}
