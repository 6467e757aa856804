package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOneListOfNamespacesIsLeftAlone: by controllers, by webhooks, and as the
// target of requests.
func TestOneListOfNamespacesIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change             func(*Config)
		excluded, reserved []string
		covered, uncovered []string
	}{
		"the system's, without being told": {
			func(*Config) {},
			[]string{"kube-node-lease", "kube-public", "kube-system"}, []string{"kube-node-lease", "kube-public", "kube-system", "ops"},
			[]string{"a", "ops"}, []string{"kube-system"},
		},
		"those that are configured, under either key": {
			func(c *Config) {
				c.ExcludedNamespaces, c.Webhook.ExceptNamespaces = []string{"lab"}, []string{"dev", "lab"}
			},
			[]string{"dev", "kube-node-lease", "kube-public", "kube-system", "lab"}, []string{"dev", "kube-node-lease", "kube-public", "kube-system", "lab", "ops"},
			[]string{"a"}, []string{"dev", "lab"},
		},
		"an operator that is there for one of them": {
			func(c *Config) { c.Namespaces = []string{"kube-public"} },
			[]string{"kube-node-lease", "kube-system"}, []string{"kube-node-lease", "kube-public", "kube-system", "ops"},
			[]string{"kube-public"}, []string{"kube-system", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Default()
			c.Webhook.Namespace = "ops"
			test.change(&c)
			if diff := cmp.Diff(test.excluded, c.Excluded()); diff != "" {
				t.Errorf("left alone: %s", diff)
			}
			if diff := cmp.Diff(test.reserved, c.Rules().Reserved); diff != "" {
				t.Errorf("no target: %s", diff)
			}
			for _, namespace := range test.covered {
				if !c.Covers(namespace) {
					t.Errorf("%s is not looked after", namespace)
				}
			}
			for _, namespace := range test.uncovered {
				if c.Covers(namespace) {
					t.Errorf("%s is looked after", namespace)
				}
			}
		})
	}
}

// TestThePolicyRefusesWhatTheOperatorDoes compares the list in the manifest, which
// cannot read the configuration, with that of an operator installed from it.
func TestThePolicyRefusesWhatTheOperatorDoes(t *testing.T) {
	text, err := os.ReadFile("../../../config/tenancy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Webhook.Namespace = SystemNamespace
	want := "['" + strings.Join(c.Rules().Reserved, "', '") + "']"
	if !strings.Contains(string(text), want) {
		t.Errorf("the policy does not have %s", want)
	}
	if !strings.Contains(string(text), "name: "+c.Tenancy.PolicyName(PolicyRequestNamespace)+"\n") {
		t.Errorf("there is no policy %s", c.Tenancy.PolicyName(PolicyRequestNamespace))
	}
}
