package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

var restricted = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}

// podMade is nil once there is a pod of a graph.
func (s *scene) podMade(ns, prefix string) func(context.Context) error {
	return func(ctx context.Context) error {
		var list corev1.PodList
		if err := s.Client.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, pod := range list.Items {
			if strings.HasPrefix(pod.Name, prefix) {
				return nil
			}
		}
		return errors.New("there is no pod")
	}
}

// podRefused is nil once a Deployment says that the API server refuses its pods.
func (s *scene) podRefused(ns, name, why string) func(context.Context) error {
	return func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, d); err != nil {
			return err
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && strings.Contains(c.Message, why) {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", d.Status.Conditions)
	}
}

// greedy is an attack by what a graph's author says about pods.
func greedy(name, extraPodSpec string) attack {
	return attack{name: name, heldBy: []barrier{podSecurity}, try: func(s *scene) outcome {
		ns := s.namespace(restricted)
		if err := s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g", `{services: {a: {extraPodSpec: `+extraPodSpec+`}}}`)); err != nil {
			return s.refused(err)
		}
		if s.either("the pods to be judged", s.podMade(ns, "g-a-"), s.podRefused(ns, "g-a", "violates PodSecurity")) {
			return gotThrough("there is such a pod")
		}
		return held("the API server refuses the pod")
	}}
}

const sleeper = `image: "dynamo-mocker:dev", args: ["sleep infinity"]`

var _ = add(
	greedy("a graph has privileged pods where Pod Security forbids them", `{mainContainer: {`+sleeper+`, securityContext: {privileged: true}}}`),
	greedy("a graph has pods in the host's network and processes where Pod Security forbids it", `{hostNetwork: true, hostPID: true, mainContainer: {`+sleeper+`}}`),
	greedy("a graph mounts the host's files where Pod Security forbids it",
		`{volumes: [{name: host, hostPath: {path: /}}], mainContainer: {`+sleeper+`, volumeMounts: [{name: host, mountPath: /host}]}}`),
	attack{
		name: "a graph's pods run as the operator", heldBy: []barrier{platform("a pod's account is of its own namespace")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			if err := s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g",
				`{services: {a: {extraPodSpec: {serviceAccountName: `+installation.Deployment+`, mainContainer: {`+sleeper+`}}}}}`)); err != nil {
				return s.refused(err)
			}
			if s.either("the pods to be judged", s.podMade(ns, "g-a-"), s.podRefused(ns, "g-a", "serviceaccount \""+installation.Deployment+"\" not found")) {
				return gotThrough("there is such a pod")
			}
			return held("there is no such account in the namespace")
		},
	},
)
