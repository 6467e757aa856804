package graph

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	cases := map[string]struct{ got, want string }{
		"a service name is lower-cased in object names": {
			ComponentName("vllm-disagg", "VllmDecodeWorker"), "vllm-disagg-vllmdecodeworker"},
		"the Dynamo namespace joins namespace and graph": {
			DynamoNamespace("lab", "chat", false), "lab-chat"},
		"a global component lives in the shared Dynamo namespace": {
			DynamoNamespace("lab", "chat", true), "dynamo"},
		"the model hash is the start of its SHA-256": {
			ModelHash("Qwen/Qwen3-0.6B"), "fb68f5a6"},
		"a model Service is named after the hash": {
			ModelService("Qwen/Qwen3-0.6B"), "dynamo-model-fb68f5a6"},
		"the discovery account may be longer than a label": {
			DiscoveryAccount(long), long + "-k8s-service-discovery"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

func TestTooLongNamesAreShortenedWithoutCollision(t *testing.T) {
	stem := strings.Repeat("graph", 14)
	a, b := ComponentName(stem, "decode"), ComponentName(stem, "decode2")
	if len(a) > maxLabel || len(b) > maxLabel {
		t.Errorf("names are longer than a label: %q, %q", a, b)
	}
	if a == b {
		t.Errorf("two services share the name %q", a)
	}
	if a != ComponentName(stem, "decode") {
		t.Error("a shortened name is not stable")
	}
}
