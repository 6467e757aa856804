package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The registration is made by an apply, which names what it makes: so that the
// right to create can be limited to that name.
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=dynamo-operator-validating,verbs=create;get;patch;delete,roleName=dynamo-operator-manager-cluster

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=dynamo-operator-manager-cluster,verbs=get,roleName=dynamo-operator-manager-cluster

// Registrar registers the server with the API server: once somebody serves, as
// long as somebody serves.
type Registrar struct {
	Direct       client.Client
	Registration Registration
	FieldManager string
	// Owner is the ClusterRole of the operator; without a name nobody owns the
	// registration.
	Owner string
	// Pod is this replica among those behind the Service.
	Pod string
}

// Publish registers the server, or brings what is registered up to date. Before
// it is there, the server must be reachable: an API server that is told to ask
// nobody refuses everything.
func (r *Registrar) Publish(ctx context.Context, trusted []byte) error {
	if err := r.belong(ctx); err != nil {
		return err
	}
	want := r.Registration.Configuration(trusted)
	live := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := r.Direct.Get(ctx, types.NamespacedName{Name: want.Name}, live)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read webhook configuration: %w", err)
	case err == nil && r.settled(want, live):
		return nil
	case err == nil && r.Registration.InjectFrom != "":
		keep(want, live)
	case err != nil:
		if served, err := r.served(ctx, ""); err != nil || !served {
			return errors.Join(err, ErrNotServed)
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return err
	}
	if err := r.Direct.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields}), client.FieldOwner(r.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("register webhooks: %w", err)
	}
	log.FromContext(ctx).Info("registered webhooks", "configuration", want.Name)
	return nil
}

// belong finds out whose the registration is.
func (r *Registrar) belong(ctx context.Context) error {
	if r.Owner == "" {
		return nil
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err := r.Direct.Get(ctx, types.NamespacedName{Name: r.Owner}, role); err != nil {
		return fmt.Errorf("read the operator's ClusterRole: %w", err)
	}
	r.Registration.Owners = []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}}
	return nil
}

// ErrNotServed says that no replica can be reached yet.
var ErrNotServed = errors.New("webhooks are not registered: no replica is behind the Service yet")

// settled compares what we say; who injects authorities is left alone.
func (r *Registrar) settled(want, live *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	if len(want.Webhooks) != len(live.Webhooks) || !equality.Semantic.DeepEqual(want.OwnerReferences, live.OwnerReferences) {
		return false
	}
	if r.Registration.InjectFrom != "" {
		want = want.DeepCopy()
		keep(want, live)
	}
	return equality.Semantic.DeepEqual(want.Webhooks, live.Webhooks)
}

// keep leaves the authorities that somebody has injected.
func keep(want, live *admissionregistrationv1.ValidatingWebhookConfiguration) {
	injected := map[string][]byte{}
	for i := range live.Webhooks {
		injected[live.Webhooks[i].Name] = live.Webhooks[i].ClientConfig.CABundle
	}
	for i := range want.Webhooks {
		if bundle := injected[want.Webhooks[i].Name]; len(bundle) > 0 {
			want.Webhooks[i].ClientConfig.CABundle = bundle
		}
	}
}

// Served reports whether a replica behind the Service is ready.
func (r *Registrar) Served(ctx context.Context) (bool, error) { return r.served(ctx, "") }

// served reports whether a replica behind the Service is ready, other than one.
func (r *Registrar) served(ctx context.Context, other string) (bool, error) {
	if r.Registration.URL != "" {
		return other == "", nil
	}
	return Behind(ctx, r.Direct, r.Registration.Service, other)
}

// Behind reports whether a pod behind a Service is ready, other than one.
func Behind(ctx context.Context, from client.Reader, service types.NamespacedName, other string) (bool, error) {
	var slices discoveryv1.EndpointSliceList
	err := from.List(ctx, &slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	if err != nil {
		return false, fmt.Errorf("look for replicas of %s: %w", service, err)
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if ready := e.Conditions.Ready; (ready == nil || *ready) && (other == "" || e.TargetRef == nil || e.TargetRef.Name != other) {
				return true, nil
			}
		}
	}
	return false, nil
}

// NeedLeaderElection is false: the last replica to go need not be the leader.
func (r *Registrar) NeedLeaderElection() bool { return false }

// Start waits for the end. The last replica takes the registration with it, so
// that an operator that was removed locks nobody out; one of several leaves it.
func (r *Registrar) Start(ctx context.Context) error {
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	others, err := r.served(last, r.Pod)
	if err != nil || others {
		return err
	}
	gone := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	gone.Name = r.Registration.Name
	return client.IgnoreNotFound(r.Direct.Delete(last, gone))
}
