package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAPodWakesItsComponent(t *testing.T) {
	const selector, graphName, service, set = v1alpha1.LabelSelector, v1alpha1.LabelGraphName, v1alpha1.LabelComponent, lwsv1.SetNameLabelKey
	for rule, c := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"of a graph":                            {map[string]string{selector: "chat-decode", graphName: "chat", service: "decode"}, "chat-decode"},
		"of a graph that has a service's name":  {map[string]string{selector: "decode-decode", graphName: "decode", service: "decode"}, "decode-decode"},
		"that stands alone under another name":  {map[string]string{selector: "mine", graphName: "mine", service: "decode"}, "mine"},
		"that spans nodes":                      {map[string]string{set: "chat-decode-0", graphName: "chat", service: "decode"}, "chat-decode"},
		"that spans nodes and ends in a number": {map[string]string{set: "chat-decode-2-0", graphName: "chat", service: "decode-2"}, "chat-decode-2"},
		"of an earlier operator":                {map[string]string{graphName: "chat", service: "decode"}, "chat-decode"},
		"on Grove there is none":                {map[string]string{"grove.io/podclique": "x", graphName: "chat", service: "decode"}, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			got := ""
			for _, request := range ComponentOfPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}}) {
				got = request.Name
			}
			if got != c.want {
				t.Errorf("woke %q, want %q", got, c.want)
			}
		})
	}
}
