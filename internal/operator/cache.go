package operator

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// stores says what the informers hold. Everything in it was written by tenants,
// so nothing is held that is not used: of pull secrets that they are there, of
// ConfigMaps no data (see newCache), of others' objects an outline. Secrets,
// ConfigMaps and Jobs that do not concern us are not asked for.
func stores(cfg config.Config) cache.Options {
	options := cache.Options{
		SyncPeriod:       &cfg.Controller.Resync.Duration,
		DefaultTransform: apply.Trim,
		NewInformer:      newInformer,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:                    {Field: fields.OneTermEqualSelector("type", string(corev1.SecretTypeDockerConfigJson)), Transform: observe.TrimPullSecret},
			&corev1.ConfigMap{}:                 {Label: controller.Labelled(v1alpha1.LabelGraphName), Transform: apply.TrimConfigMap},
			&corev1.Pod{}:                       {Label: controller.Labelled(v1alpha1.LabelGraphName), Transform: observe.TrimPod},
			&corev1.Event{}:                     {Field: observe.Warnings(), Transform: observe.TrimWarning},
			&discoveryv1.EndpointSlice{}:        {Label: controller.Labelled(v1alpha1.LabelBaseModelHash)},
			&batchv1.Job{}:                      {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}), Transform: apply.TrimJob},
			&resourcev1.ResourceClaimTemplate{}: {Transform: apply.TrimDeviceTemplate},
			&appsv1.ControllerRevision{}:        {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}), Transform: apply.TrimRevision},
		},
	}
	for _, kind := range everybodys() {
		options.ByObject[kind] = cache.ByObject{Transform: apply.TrimForeign}
	}
	if cfg.ClusterWide() {
		// The Leases of tenancy alone: nodes have one each.
		options.ByObject[&coordinationv1.Lease{}] = cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, namespacescope.LeaseName)}
	} else {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range cfg.Namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// everybodys are the kinds of children that others have objects of, too.
func everybodys() []client.Object {
	return []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.PersistentVolumeClaim{},
		&networkingv1.Ingress{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	}
}

// partiallyCached are the kinds of which the informers hold neither all objects nor all of
// each.
func partiallyCached() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &batchv1.Job{}, &appsv1.ControllerRevision{}, &coordinationv1.Lease{}}
}

// cacheLike is another cache like the manager's, with other selectors: one informer
// knows one.
func cacheLike(mgr manager.Manager, cfg config.Config, selectors map[client.Object]cache.ByObject) (cache.Cache, error) {
	options := stores(cfg)
	options.Scheme, options.Mapper, options.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	options.ByObject = selectors
	return newCache(mgr.GetConfig(), options)
}
