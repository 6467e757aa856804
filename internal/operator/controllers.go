package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/account"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/checkpoint"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/componentdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/failover"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/graphdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/model"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/request"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/scalingadapter"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/topology"
)

// setups are all controllers that the operator runs. Optional APIs are followed
// for those before them.
var setups = []func(context.Context, *controller.Deps) error{
	setupPullSecrets,
	graphdeployment.Setup,
	componentdeployment.Setup,
	scalingadapter.Setup,
	checkpoint.Setup,
	model.Setup,
	request.Setup,
	account.Setup,
	topology.Setup,
	failover.Setup,
	controller.SetupPolicies,
	controller.SetupOptionalAPIs,
	setupInventory,
	setupScope,
}

func setUpControllers(ctx context.Context, d *controller.Deps) error {
	for _, setup := range setups {
		if err := setup(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// setupScope holds the operator's Leases.
func setupScope(_ context.Context, d *controller.Deps) error {
	if !d.Scope.Claims() {
		return nil
	}
	err := d.AddReadyzCheck("scope", func(*http.Request) error { return d.Scope.Idle() })
	return errors.Join(err, d.Add(d.Scope))
}

// setupPullSecrets drops what is remembered of pull secrets that are deleted.
func setupPullSecrets(ctx context.Context, d *controller.Deps) error {
	informer, err := d.GetCache().GetInformer(ctx, &corev1.Secret{})
	if err != nil {
		return fmt.Errorf("follow pull secrets: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(gone any) {
		if last, missed := gone.(toolscache.DeletedFinalStateUnknown); missed {
			gone = last.Obj
		}
		if secret, ok := gone.(metav1.Object); ok {
			d.Facts.Registries.Forget(secret.GetUID())
		}
	}})
	return err
}
