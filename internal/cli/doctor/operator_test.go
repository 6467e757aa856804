package doctor

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestAWebhookThatTrustsNoAuthority(t *testing.T) {
	webhook := func(name, bundle string, policy admissionregistrationv1.FailurePolicyType) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name, FailurePolicy: &policy, ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte(bundle)},
		}
	}
	for rule, c := range map[string]struct {
		judges []admissionregistrationv1.ValidatingWebhook
		want   string
	}{
		"all trust one":    {[]admissionregistrationv1.ValidatingWebhook{webhook("a", "ca", admissionregistrationv1.Ignore)}, ""},
		"one trusts none":  {[]admissionregistrationv1.ValidatingWebhook{webhook("a", "ca", admissionregistrationv1.Ignore), webhook("b", "", admissionregistrationv1.Ignore)}, "webhook b of hooks trusts no authority (its caBundle is empty): every object is admitted without being judged"},
		"and fails closed": {[]admissionregistrationv1.ValidatingWebhook{webhook("a", "", admissionregistrationv1.Fail)}, "every object is refused"},
	} {
		t.Run(rule, func(t *testing.T) {
			f, untrusted := empty("hooks", c.judges)
			if untrusted != (c.want != "") || !strings.Contains(f.what, c.want) || untrusted && (f.verdict != wrong || f.todo == "") {
				t.Errorf("%+v", f)
			}
		})
	}
}
