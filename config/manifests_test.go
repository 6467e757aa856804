package manifests

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// TestPoliciesJudgeTheStoredVersion because a policy that names other versions of our
// kinds is handed objects that its expressions do not read: it would admit them.
func TestPoliciesJudgeTheStoredVersion(t *testing.T) {
	seen := 0
	files, err := fs.Glob(Operator, "tenancy/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(Operator, file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			p := admissionregistrationv1.ValidatingAdmissionPolicy{}
			if err := yaml.Unmarshal(document, &p); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if p.Kind != "ValidatingAdmissionPolicy" {
				continue
			}
			for _, rule := range p.Spec.MatchConstraints.ResourceRules {
				if !slices.Contains(rule.APIGroups, "nvidia.com") {
					continue
				}
				seen++
				if m := p.Spec.MatchConstraints.MatchPolicy; !slices.Equal(rule.APIVersions, []string{"v1alpha1"}) || m == nil || *m != admissionregistrationv1.Equivalent {
					t.Errorf("%s judges versions %v, match policy %v", p.Name, rule.APIVersions, m)
				}
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d rules about our kinds", seen)
	}
}
