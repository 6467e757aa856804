package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// server holds the truth. It adds to the fake client what an API server does to
// every object: uids, generations, and an event for each change.
type server struct {
	client.WithWatch
	// changed is told of every change with the object as it is now, or nil.
	changed func(id, client.Object)
	uids    int
}

// lean is a scheme of the kinds in play alone: the fake client looks through all
// of it at every write.
func lean() *runtime.Scheme {
	s := runtime.NewScheme()
	for version, kinds := range map[schema.GroupVersion][]runtime.Object{
		v1alpha1.SchemeGroupVersion: {
			&v1alpha1.DynamoGraphDeployment{}, &v1alpha1.DynamoGraphDeploymentList{},
			&v1alpha1.DynamoComponentDeployment{}, &v1alpha1.DynamoComponentDeploymentList{},
			&v1alpha1.DynamoGraphDeploymentScalingAdapter{}, &v1alpha1.DynamoGraphDeploymentScalingAdapterList{},
		},
		appsv1.SchemeGroupVersion: {&appsv1.Deployment{}, &appsv1.DeploymentList{}},
		corev1.SchemeGroupVersion: {
			&corev1.Service{}, &corev1.ServiceList{}, &corev1.ServiceAccount{}, &corev1.ServiceAccountList{},
			&corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Secret{}, &corev1.SecretList{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{},
		},
		networkingv1.SchemeGroupVersion: {&networkingv1.Ingress{}, &networkingv1.IngressList{}, &networkingv1.NetworkPolicy{}, &networkingv1.NetworkPolicyList{}},
		policyv1.SchemeGroupVersion:     {&policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}},
		rbacv1.SchemeGroupVersion:       {&rbacv1.Role{}, &rbacv1.RoleList{}, &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}},
	} {
		s.AddKnownTypes(version, kinds...)
		metav1.AddToGroupVersion(s, version)
	}
	return s
}

func newServer(scheme *runtime.Scheme) *server {
	return &server{WithWatch: fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().
		WithStatusSubresource(&v1alpha1.DynamoGraphDeployment{}, &v1alpha1.DynamoComponentDeployment{}, &appsv1.Deployment{}).
		Build()}
}

// truth reads an object; nil if there is none.
func (s *server) truth(ctx context.Context, i id) client.Object {
	empty, err := s.Scheme().New(i.kind)
	if err != nil {
		panic(err) // a kind that the operator writes is in its scheme
	}
	object := empty.(client.Object)
	if err := s.WithWatch.Get(ctx, i.key, object); err != nil {
		if !apierrors.IsNotFound(err) {
			panic(err)
		}
		return nil
	}
	return object
}

// change runs a write of one object and does the rest of a server's work.
func (s *server) change(ctx context.Context, i id, write func() error) error {
	before := s.truth(ctx, i)
	if err := write(); err != nil {
		return err
	}
	after := s.truth(ctx, i)
	if after == nil {
		if before != nil {
			s.changed(i, nil)
		}
		return nil
	}
	if before != nil && before.GetResourceVersion() == after.GetResourceVersion() {
		return nil
	}
	touched := false
	if after.GetUID() == "" {
		s.uids++
		after.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		after.SetGeneration(1)
		touched = true
	} else if before != nil && !reflect.DeepEqual(spec(before), spec(after)) {
		after.SetGeneration(before.GetGeneration() + 1)
		touched = true
	}
	if touched {
		if err := s.WithWatch.Update(ctx, after); err != nil {
			return err
		}
	}
	s.changed(i, s.truth(ctx, i))
	return nil
}

func spec(object client.Object) any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err)
	}
	return fields["spec"]
}

// door is the operator's client: reads come from its informers, writes may fail
// in every way that a network and a server have.
type door struct {
	client.Client
	server *server
	cache  *store
	faults *faults
	// wrote is told of every write that the server took, and whether the object
	// was there before.
	wrote func(verb string, i id, existed bool)
}

// faults decides what goes wrong.
type faults struct {
	random *rand.Rand
	// rate is how many of a hundred writes go wrong.
	rate int
	// kill ends the operator before this many more writes; negative is never.
	kill int
}

// killed is what a write panics with when the operator dies at it.
type killed struct{}

// before returns an error that comes instead of the write; after, one that comes
// although it was done.
func (f *faults) before(i id) error {
	if f.kill == 0 {
		panic(killed{})
	}
	f.kill--
	if f.random.IntN(100) >= f.rate {
		return nil
	}
	resource := schema.GroupResource{Group: i.kind.Group, Resource: i.kind.Kind}
	switch f.random.IntN(3) {
	case 0:
		return apierrors.NewConflict(resource, i.key.Name, fmt.Errorf("made up"))
	case 1:
		return apierrors.NewTooManyRequests("made up", 1)
	default:
		return apierrors.NewInternalError(fmt.Errorf("made up"))
	}
}

func (f *faults) after() error {
	if f.random.IntN(100) >= f.rate {
		return nil
	}
	return apierrors.NewTimeoutError("made up: it was done, but nobody heard of it", 1)
}

func (d *door) write(ctx context.Context, verb string, i id, do func() error) error {
	if err := d.faults.before(i); err != nil {
		return err
	}
	existed := d.server.truth(ctx, i) != nil
	if err := d.server.change(ctx, i, do); err != nil {
		return err
	}
	d.wrote(verb, i, existed)
	return d.faults.after()
}

func (d *door) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return d.cache.Get(ctx, key, into, options...)
}

func (d *door) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return d.cache.List(ctx, into, options...)
}

func (d *door) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	object := configuration.(interface {
		UnstructuredContent() map[string]any
	})
	u := &unstructured.Unstructured{Object: object.UnstructuredContent()}
	i := id{u.GroupVersionKind(), client.ObjectKeyFromObject(u)}
	if uid := u.GetUID(); uid != "" {
		// A real server refuses to apply to an object of another uid.
		if now := d.server.truth(ctx, i); now == nil || now.GetUID() != uid {
			return apierrors.NewConflict(schema.GroupResource{Resource: i.kind.Kind}, i.key.Name, fmt.Errorf("uid differs"))
		}
	}
	return d.write(ctx, "apply", i, func() error { return d.server.WithWatch.Apply(ctx, configuration, options...) })
}

func (d *door) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	i, err := d.cache.identify(object)
	if err != nil {
		return err
	}
	return d.write(ctx, "patch", i, func() error { return d.server.WithWatch.Patch(ctx, object, patch, options...) })
}

func (d *door) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	i, err := d.cache.identify(object)
	if err != nil {
		return err
	}
	return d.write(ctx, "delete", i, func() error { return d.server.WithWatch.Delete(ctx, object, options...) })
}

func (d *door) Status() client.SubResourceWriter { return statusDoor{d.Client.Status(), d} }

type statusDoor struct {
	client.SubResourceWriter
	door *door
}

func (s statusDoor) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	i, err := s.door.cache.identify(object)
	if err != nil {
		return err
	}
	return s.door.write(ctx, "report", i, func() error { return s.door.server.WithWatch.Status().Patch(ctx, object, patch, options...) })
}
