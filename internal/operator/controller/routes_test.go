package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

func TestRoutesAreMadeForThoseWhoAreAuthorizedOrListed(t *testing.T) {
	ingress := &v1alpha1.IngressSpec{Enabled: true, Host: "a", HostSuffix: new("example.com"), IngressControllerClassName: new("nginx")}
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"web": {Ingress: ingress}}
	dcd := &v1alpha1.DynamoComponentDeployment{}
	dcd.Spec.Ingress = ingress
	lists := func(host string) validation.IngressRules {
		return validation.IngressRules{Hosts: []string{host}, Classes: []string{"nginx"}}
	}
	down := errors.New("connection refused")
	answer := func(is bool, err error) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { return is, err }
	}
	for rule, c := range map[string]struct {
		routes  Routes
		refused bool
		err     error
	}{
		"policies are enforced":                   {routes: Routes{Authorized: answer(true, nil)}},
		"policies are missing":                    {routes: Routes{Authorized: answer(false, nil)}, refused: true},
		"policies cannot be read":                 {routes: Routes{}, refused: true},
		"policies cannot be read now":             {routes: Routes{Authorized: answer(false, down)}, err: down},
		"lists cover it, so nobody is asked":      {routes: Routes{Rules: lists(".example.com"), Authorized: answer(false, down)}},
		"lists do not cover it, enforced or not":  {routes: Routes{Rules: lists(".other.com"), Authorized: answer(true, nil)}, refused: true},
		"lists cover a part, policies the others": {routes: Routes{Rules: validation.IngressRules{Hosts: []string{".example.com"}}, Authorized: answer(true, nil)}},
		"lists cover a part, and no policies":     {routes: Routes{Rules: validation.IngressRules{Hosts: []string{".example.com"}}, Authorized: answer(false, nil)}, refused: true},
	} {
		t.Run(rule, func(t *testing.T) {
			for _, err := range []error{c.routes.OfGraph(t.Context(), dgd), c.routes.OfComponent(t.Context(), dcd)} {
				f, known := fault.From(err)
				refused := known && f.Reason == v1alpha1.ReasonIngressNotAllowed
				if refused != c.refused || (c.err != nil && !errors.Is(err, c.err)) || (err == nil) != (!c.refused && c.err == nil) {
					t.Errorf("error %v", err)
				}
				if refused && (fault.Wait(err) != 30*time.Second || fault.Retry(err)) {
					t.Errorf("looked at again after %v, with back-off %v", fault.Wait(err), fault.Retry(err))
				}
			}
		})
	}
}
