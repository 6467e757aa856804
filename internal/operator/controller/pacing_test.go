package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

func conditions(kind string, status metav1.ConditionStatus, since time.Time) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(since)}}
}

func TestTurned(t *testing.T) {
	component := func(available metav1.ConditionStatus, message string) client.Object {
		dcd := &v1alpha1.DynamoComponentDeployment{}
		dcd.Status.Conditions = conditions(v1alpha1.ConditionAvailable, available, time.Time{})
		dcd.Status.Conditions[0].Message = message
		return dcd
	}
	deployment := func(generation int64, replicas, ready int32) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Status: appsv1.DeploymentStatus{Replicas: replicas, ReadyReplicas: ready}}
	}
	cases := map[string]struct {
		was, is client.Object
		want    bool
	}{
		"a component that says the same in other words":   {component("False", "a"), component("False", "b"), false},
		"a component that becomes available":              {component("False", ""), component("True", ""), true},
		"a Deployment that only counts its pods":          {deployment(1, 0, 0), deployment(1, 1, 0), false},
		"a Deployment whose pod is ready":                 {deployment(1, 1, 0), deployment(1, 1, 1), true},
		"a Deployment that somebody edits":                {deployment(1, 1, 1), deployment(2, 1, 1), true},
		"a kind of which we do not know what matters":     {&corev1.Service{}, &corev1.Service{}, true},
		"a Deployment that loses a pod is not on its way": {deployment(1, 2, 2), deployment(1, 2, 1), true},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := readinessChanged(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("turned = %v, want %v", got, c.want)
			}
		})
	}
}

func TestFell(t *testing.T) {
	component := func(generation int64, available metav1.ConditionStatus) client.Object {
		dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
		dcd.Status.Conditions = conditions(v1alpha1.ConditionAvailable, available, time.Time{})
		return dcd
	}
	deployment := func(generation int64, available int32) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
	}
	groups := func(ready int32) client.Object {
		return &lwsv1.LeaderWorkerSet{Status: lwsv1.LeaderWorkerSetStatus{ReadyReplicas: ready}}
	}
	cases := map[string]struct {
		was, is client.Object
		want    bool
	}{
		"a component that stops being available":        {component(1, "True"), component(1, "False"), true},
		"one that somebody changes":                     {component(1, "True"), component(2, "False"), false},
		"one that has never been available":             {component(1, "False"), component(1, "Unknown"), false},
		"one that comes back":                           {component(1, "False"), component(1, "True"), false},
		"a Deployment that loses a pod":                 {deployment(1, 2), deployment(1, 1), true},
		"a Deployment that is made smaller":             {deployment(1, 2), deployment(2, 1), false},
		"a Deployment that gains one":                   {deployment(1, 1), deployment(1, 2), false},
		"a group that is not ready any more":            {groups(2), groups(1), true},
		"a kind of which we do not know what is a fall": {&corev1.Service{}, &corev1.Service{}, false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := degraded(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("fell = %v, want %v", got, c.want)
			}
		})
	}
}

func TestIntent(t *testing.T) {
	graph := func(change func(*v1alpha1.DynamoGraphDeployment)) *v1alpha1.DynamoGraphDeployment {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "2"}}
		change(dgd)
		return dgd
	}
	cases := map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment)
		want   bool
	}{
		"a periodic look catches what events missed": {func(d *v1alpha1.DynamoGraphDeployment) { d.ResourceVersion = "1" }, true},
		"a status wakes nobody":                      {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.State = "pending" }, false},
		"our own note wakes nobody": {func(d *v1alpha1.DynamoGraphDeployment) {
			d.Annotations = workload.Record(nil, workload.ProviderGrove)
		}, false},
		"an annotation of a user is an intent": {func(d *v1alpha1.DynamoGraphDeployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.AnnotationKaiQueue, "q")
		}, true},
		"a spec is an intent":     {func(d *v1alpha1.DynamoGraphDeployment) { d.Generation = 2 }, true},
		"a deletion is an intent": {func(d *v1alpha1.DynamoGraphDeployment) { d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		"a label is an intent":    {func(d *v1alpha1.DynamoGraphDeployment) { d.Labels = map[string]string{"a": "b"} }, true},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			before := graph(func(d *v1alpha1.DynamoGraphDeployment) { d.ResourceVersion = "1" })
			if got := IntentChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: graph(c.change)}); got != c.want {
				t.Errorf("let through = %v, want %v", got, c.want)
			}
		})
	}
}
