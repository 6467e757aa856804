package retryclient

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestARequestIsRepeatedUntilItIsAnswered(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		first error // what becomes of the first request
		done  bool  // whether it was carried out nevertheless
		want  error
	}{
		"a webhook that is not reached":    {apierrors.NewInternalError(errors.New("failed calling webhook")), false, nil},
		"a server that is away":            {syscall.ECONNREFUSED, false, nil},
		"an answer that gets lost":         {syscall.ECONNRESET, true, nil},
		"a refusal is an answer":           {apierrors.NewForbidden(resource, "c", errors.New("no")), false, apierrors.NewForbidden(resource, "c", errors.New("no"))},
		"what is there cannot be made":     {apierrors.NewAlreadyExists(resource, "c"), false, apierrors.NewAlreadyExists(resource, "c")},
		"what works is not done twice":     {nil, true, nil},
		"too many requests at a time":      {apierrors.NewTooManyRequests("later", 1), false, nil},
		"a server that has no time for it": {apierrors.NewTimeoutError("late", 1), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				server := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
					Create: func(ctx context.Context, c2 client.WithWatch, object client.Object, options ...client.CreateOption) error {
						asked++
						if asked > 1 {
							return c2.Create(ctx, object, options...)
						}
						if c.done {
							if err := c2.Create(ctx, object.DeepCopyObject().(client.Object), options...); err != nil {
								return err
							}
						}
						return c.first
					},
				})
				err := Client(server).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}})
				if (err == nil) != (c.want == nil) || err != nil && err.Error() != c.want.Error() {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if again := Unanswered(c.first); again != (asked == 2) {
					t.Errorf("asked %d times", asked)
				}
			})
		})
	}
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return syscall.ECONNREFUSED
			},
		})
		if err := Client(server).Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "c"}, &corev1.ConfigMap{}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
}
