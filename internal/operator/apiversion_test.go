package operator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/dynamo-operator/dynamo-operator/config/crd"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// runner is a manager that starts what it is given at once.
type runner struct {
	manager.Manager
	ctx context.Context
}

func (r runner) Add(runnable manager.Runnable) error {
	go func() { _ = runnable.Start(r.ctx) }()
	return nil
}

func (r runner) GetEventRecorder(string) recorder.EventRecorder { return events.NewFakeRecorder(10) }

// TestAnOperatorWithoutWebhooksFreezesWhatItServed before they were turned off.
func TestAnOperatorWithoutWebhooksFreezesWhatItServed(t *testing.T) {
	for rule, c := range map[string]struct {
		change func(*config.Config)
		want   int
	}{
		"where it looks after the cluster":                    {func(*config.Config) {}, 4},
		"but not as one of a namespace, which has no right":   {func(c *config.Config) { c.Namespaces = []string{"team"} }, 0},
		"nor outside of a cluster, where it has no Service":   {func(c *config.Config) { c.Webhook.Namespace = "" }, 0},
		"nor what leads to the Service of another operator's": {func(c *config.Config) { c.Webhook.Service = "other" }, 0},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config.Default()
				cfg.Webhook.Namespace = "ops"
				direct := serving(t, types.NamespacedName{Namespace: "ops", Name: cfg.Webhook.Service})
				c.change(&cfg)
				ctx, stop := context.WithCancel(t.Context())
				if err := addWithoutWebhooks(runner{ctx: ctx}, direct, cfg, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				stop()
				synctest.Wait()
				frozen := 0
				for _, name := range definition.Converted {
					d := &apiextensionsv1.CustomResourceDefinition{}
					if err := direct.Get(t.Context(), types.NamespacedName{Name: name}, d); err != nil {
						t.Fatal(err)
					}
					if definition.Frozen(d) {
						frozen++
					}
				}
				if diff := cmp.Diff(c.want, frozen); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// serving is an API server whose definitions serve v1beta1 by a Service.
func serving(t *testing.T, by types.NamespacedName) client.Client {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(scheme.New())
	definitions, err := crd.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].Served = true
		}
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				CABundle: []byte("CA"), Service: &apiextensionsv1.ServiceReference{Namespace: by.Namespace, Name: by.Name, Path: new("/convert")},
			},
		}}
		b = b.WithObjects(d)
	}
	return b.Build()
}
