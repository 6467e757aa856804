package validation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// IngressAllowed is the check that keeps users from being reached by hosts, gateways
// and annotations that they could not take themselves.
const IngressAllowed guard.Guard = "ingress-allowed"

// IngressRules say what a user may write into an Ingress or a VirtualService that
// the operator makes with rights of its own. Each list that is not empty limits
// its part. A part whose list is empty is free only if its author was authorized.
type IngressRules struct {
	// Hosts are host names, or suffixes of them that begin with a dot. A wildcard
	// has to be listed as it is.
	Hosts []string
	// Classes are those of ingress controllers.
	Classes []string
	// Gateways are Istio's, as namespace/name, or mesh.
	Gateways []string
	// Metadata are prefixes of the keys of annotations and labels.
	Metadata []string
	// Defaults are what the operator gives to those who say nothing, or not all.
	Defaults graph.IngressDefaults
}

// GraphIngress checks what the services of a graph ask to be reached by. Its author
// is authorized if the API server has checked that they may make that themselves.
func GraphIngress(dgd *v1alpha1.DynamoGraphDeployment, r IngressRules, authorized bool) field.ErrorList {
	var errs field.ErrorList
	for name, s := range dgd.Spec.SortedServices() {
		if s != nil {
			errs = append(errs, r.judge(s.Ingress, authorized, dgd.Name, dgd.Namespace, field.NewPath("spec", "services").Key(name).Child("ingress"))...)
		}
	}
	return sorted(errs)
}

// ComponentIngress checks what a component asks to be reached by.
func ComponentIngress(dcd *v1alpha1.DynamoComponentDeployment, r IngressRules, authorized bool) field.ErrorList {
	return sorted(r.judge(dcd.Spec.Ingress, authorized, graph.ParentGraph(dcd), dcd.Namespace, field.NewPath("spec", "ingress")))
}

// IngressFault turns what is not allowed into the error of a reconcile that leaves the
// Ingress or VirtualService as it is and goes on with the rest. A policy may be
// installed at any time, so the object is looked at again.
func IngressFault(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return fault.New(fault.Waiting, v1alpha1.ReasonIngressNotAllowed, "no Ingress or VirtualService is made or changed: %v", Brief(errs).ToAggregate()).Again(ingressAgain)
}

const ingressAgain = 30 * time.Second

// judge checks one ingress. What equals the operator's own default is allowed: a
// component of a graph carries it, and a graph of that name would get it unasked,
// as one that has the host for its name would. What the operator is configured
// with itself is on no list.
func (r IngressRules) judge(i *v1alpha1.IngressSpec, authorized bool, graphName, namespace string, at *field.Path) field.ErrorList {
	asked := graph.ReadIngress(i, r.Defaults)
	if asked == nil || (asked.Class == "" && asked.Gateway == "") || IngressAllowed.Off() || graph.OnlyHost(i) ||
		equality.Semantic.DeepEqual(i, graph.DefaultIngress(graphName, r.Defaults)) {
		return nil
	}
	check := func(at *field.Path, value, key string, list []string, matches func(entry string) bool) *field.Error {
		switch {
		case len(list) == 0 && authorized:
			return nil
		case len(list) == 0:
			return field.Invalid(at, value, "is not covered by ingress."+key+" of the operator's configuration, and no enforced ValidatingAdmissionPolicy authorises the author")
		case slices.ContainsFunc(list, matches):
			return nil
		default:
			return field.Invalid(at, value, "is not in ingress."+key+" of the operator's configuration: "+strings.Join(list, ", "))
		}
	}
	var errs field.ErrorList
	add := func(e *field.Error) {
		if e != nil {
			errs = append(errs, e)
		}
	}
	add(check(at.Child("host"), asked.Host, "allowedHosts", r.Hosts, func(entry string) bool { return covers(entry, asked.Host) }))
	if asked.Class != "" && i.IngressControllerClassName != nil {
		add(check(at.Child("ingressControllerClassName"), asked.Class, "allowedClasses", r.Classes, func(entry string) bool { return entry == asked.Class }))
	}
	if asked.Gateway != "" && i.VirtualServiceGateway != nil {
		gateway := qualified(asked.Gateway, namespace)
		add(check(at.Child("virtualServiceGateway"), gateway, "allowedGateways", r.Gateways, func(entry string) bool { return entry == gateway }))
	}
	for part, keys := range map[string]map[string]string{"annotations": asked.Annotations, "labels": asked.Labels} {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			add(check(at.Child(part).Key(key), key, "allowedAnnotations", r.Metadata, func(entry string) bool { return strings.HasPrefix(key, entry) }))
		}
	}
	return errs
}

// covers reports whether an entry of the list of hosts stands for a host. A
// wildcard takes the names of others, so no suffix stands for it.
func covers(entry, host string) bool {
	return entry == host || (strings.HasPrefix(entry, ".") && strings.HasSuffix(host, entry) && !strings.Contains(host, "*"))
}

// qualified writes a gateway as Istio reads it: without a namespace, or with a
// dot for one, it is beside the VirtualService; mesh is every sidecar.
func qualified(gateway, namespace string) string {
	if name, own := strings.CutPrefix(gateway, "./"); own {
		gateway = name
	}
	if gateway == "mesh" || strings.ContainsAny(gateway, "/.") {
		return gateway
	}
	return namespace + "/" + gateway
}
