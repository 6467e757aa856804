package installation

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scope names the Lease of the operator for the whole cluster.
var Scope = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "dynamo-cluster-scope"}

// Helm's own annotations on what belongs to a release.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// Alone returns an error if the cluster has another operator for all its namespaces:
// two would write the same objects in turn. Whether a holder is alive is seen by its
// renewals, not by its clock.
func (i Installer) Alone(ctx context.Context) error {
	lease, err := i.scope(ctx)
	if err != nil {
		return err
	}
	if err := byHelm(lease); err != nil {
		return err
	}
	holder := lease.Spec.HolderIdentity
	if holder == nil || *holder == "" || lease.Spec.LeaseDurationSeconds == nil || strings.HasPrefix(*holder, Namespace+"/"+Deployment+"-") {
		return nil
	}
	silence, cancel := context.WithTimeout(ctx, time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second)
	defer cancel()
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-silence.Done():
			return ctx.Err()
		}
		now, err := i.scope(silence)
		switch {
		case silence.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case now.Spec.HolderIdentity != nil && now.ResourceVersion != lease.ResourceVersion:
			return fmt.Errorf("this cluster already has an operator for all namespaces: %s; stop or uninstall that one first", *now.Spec.HolderIdentity)
		}
	}
}

// NotByHelm returns an error if the cluster's operator is of a release of Helm's, which is
// for Helm to uninstall.
func (i Installer) NotByHelm(ctx context.Context) error {
	lease, err := i.scope(ctx)
	if err != nil {
		return err
	}
	return byHelm(lease)
}

func byHelm(lease *coordinationv1.Lease) error {
	name := lease.Annotations[releaseName]
	if name == "" {
		return nil
	}
	return fmt.Errorf("this cluster already has an operator for all namespaces: release %s in namespace %s; upgrade or uninstall that by Helm", name, lease.Annotations[releaseNamespace])
}

// scope reads the Lease; an empty one if there is none.
func (i Installer) scope(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := client.IgnoreNotFound(i.Client.Get(ctx, Scope, lease)); err != nil {
		return nil, fmt.Errorf("read Lease %s: %w", Scope, err)
	}
	return lease, nil
}
