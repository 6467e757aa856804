package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func replicasOf(pods ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ops", Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, pod := range pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod},
			Conditions: discoveryv1.EndpointConditions{Ready: new(pod != "unready")},
		})
	}
	return slice
}

// registrar over a server that counts writes.
func registrar(writes *int, objects ...client.Object) *Registrar {
	server := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			*writes++
			return c.Apply(ctx, object, opts...)
		},
	}).Build()
	return &Registrar{Direct: server, FieldManager: "test", Pod: "me", Registration: Registration{
		Name: "hooks", Service: types.NamespacedName{Namespace: "ops", Name: "hook"}, Except: []string{"kube-system", "ops"},
		FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: 10,
	}}
}

func registered(t *testing.T, r *Registrar) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	live := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := r.Direct.Get(t.Context(), types.NamespacedName{Name: "hooks"}, live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func TestNothingIsRegisteredBeforeItIsServed(t *testing.T) {
	for rule, slice := range map[string]*discoveryv1.EndpointSlice{"nobody": replicasOf(), "nobody who is ready": replicasOf("unready")} {
		writes := 0
		r := registrar(&writes, slice)
		if err := r.Publish(t.Context(), []byte("ca")); !errors.Is(err, ErrNotServed) || registered(t, r) != nil {
			t.Errorf("served by %s: %v", rule, err)
		}
	}
}

func TestPublish(t *testing.T) {
	writes := 0
	r := registrar(&writes, replicasOf("me"))
	for _, trusted := range []string{"one", "one", "one\ntwo"} {
		if err := r.Publish(t.Context(), []byte(trusted)); err != nil {
			t.Fatal(err)
		}
		live := registered(t, r)
		if len(live.Webhooks) != len(Kinds) {
			t.Fatalf("%d webhooks", len(live.Webhooks))
		}
		for _, hook := range live.Webhooks {
			if string(hook.ClientConfig.CABundle) != trusted || *hook.MatchPolicy != admissionregistrationv1.Equivalent {
				t.Errorf("%s trusts %q, matches %s", hook.Name, hook.ClientConfig.CABundle, *hook.MatchPolicy)
			}
			if e := hook.NamespaceSelector.MatchExpressions[0]; e.Operator != metav1.LabelSelectorOpNotIn || !slices.Contains(e.Values, "kube-system") || !slices.Contains(e.Values, "ops") {
				t.Errorf("%s looks at %v", hook.Name, e)
			}
		}
	}
	if writes != 2 {
		t.Errorf("%d writes, want one for each change", writes)
	}
}

func TestTheLastReplicaTakesTheRegistrationWithIt(t *testing.T) {
	for rule, c := range map[string]struct {
		pods []string
		kept bool
	}{
		"alone":                             {[]string{"me"}, false},
		"with another":                      {[]string{"me", "other"}, true},
		"with another that is not ready":    {[]string{"me", "unready"}, false},
		"with another, not listed any more": {[]string{"other"}, true},
	} {
		t.Run(rule, func(t *testing.T) {
			writes := 0
			r := registrar(&writes, replicasOf(c.pods...), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.Start(ctx); err != nil {
				t.Fatal(err)
			}
			if kept := registered(t, r) != nil; kept != c.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}

func TestWhoIsNotAskedAbout(t *testing.T) {
	conditions := Registration{Operator: `a"b`}.Configuration(nil).Webhooks[0].MatchConditions
	if len(conditions) != 2 || conditions[1].Expression != `request.userInfo.username != "a\"b"` {
		t.Errorf("conditions %v", conditions)
	}
	if conditions := (Registration{}).Configuration(nil).Webhooks[0].MatchConditions; len(conditions) != 1 {
		t.Errorf("conditions %v", conditions)
	}
}

func TestCertManagerInjectsItself(t *testing.T) {
	writes := 0
	r := registrar(&writes, replicasOf("me"))
	r.Registration.InjectFrom = "ops/cert"
	publish := func() *admissionregistrationv1.ValidatingWebhookConfiguration {
		t.Helper()
		if err := r.Publish(t.Context(), []byte("ours")); err != nil {
			t.Fatal(err)
		}
		return registered(t, r)
	}
	live := publish()
	if live.Annotations["cert-manager.io/inject-ca-from"] != "ops/cert" || string(live.Webhooks[0].ClientConfig.CABundle) != "ours" {
		t.Errorf("before it is injected: annotations %v, authorities %q", live.Annotations, live.Webhooks[0].ClientConfig.CABundle)
	}
	for i := range live.Webhooks {
		live.Webhooks[i].ClientConfig.CABundle = []byte("injected")
	}
	if err := r.Direct.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if live = publish(); string(live.Webhooks[0].ClientConfig.CABundle) != "injected" || writes != 1 {
		t.Errorf("what is injected is overwritten: %q after %d writes", live.Webhooks[0].ClientConfig.CABundle, writes)
	}
	live.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
	if err := r.Direct.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if live = publish(); string(live.Webhooks[0].ClientConfig.CABundle) != "injected" || *live.Webhooks[0].FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("the rest is mended and the authority left: %q, %s", live.Webhooks[0].ClientConfig.CABundle, *live.Webhooks[0].FailurePolicy)
	}
}
