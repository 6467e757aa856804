package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// oldest is the first version of Kubernetes that has all that we use.
var oldest = utilversion.MustParseGeneric("1.30.0")

func version(_ context.Context, p target) ([]finding, error) {
	info, err := p.apis.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the server for its version: %w", err)
	}
	got, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil {
		return []finding{{verdict: note, what: "Kubernetes " + info.GitVersion, todo: "the version cannot be read; it has to be " + oldest.String() + " or newer"}}, nil
	}
	if got.LessThan(oldest) {
		return []finding{{verdict: wrong, what: "Kubernetes " + info.GitVersion, todo: "upgrade it to " + oldest.String() + " or newer"}}, nil
	}
	return []finding{{what: "Kubernetes " + info.GitVersion}}, nil
}

// optionalAPI is an API that is used where it is served.
type optionalAPI struct{ group, what, without string }

var optional = []optionalAPI{
	{"leaderworkerset.x-k8s.io", "LeaderWorkerSet", "services of several nodes need it, or Grove"},
	{"grove.io", "Grove", "graphs run on components"},
	{"scheduling.volcano.sh", "Volcano", "LeaderWorkerSets are not scheduled as gangs"},
	{"scheduling.run.ai", "KAI scheduler", "Grove's gangs are scheduled by the default scheduler"},
	{"networking.istio.io", "Istio", "VirtualServices are not made"},
	{"inference.networking.k8s.io", "Gateway API inference extension", "endpoint pickers have no pool"},
	{"monitoring.coreos.com", "Prometheus operator", "monitors and alerts are not made"},
	{"cert-manager.io", "cert-manager", "the operator makes its certificates itself"},
}

func optionalAPIs(_ context.Context, p target) ([]finding, error) {
	groups, err := p.apis.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("ask the server for its APIs: %w", err)
	}
	served := map[string]bool{}
	for _, group := range groups.Groups {
		served[group.Name] = true
	}
	var findings []finding
	for _, g := range optional {
		if served[g.group] {
			findings = append(findings, finding{what: g.what + " is installed"})
		} else {
			findings = append(findings, finding{verdict: note, what: g.what + " is not installed: " + g.without})
		}
	}
	return findings, nil
}

func gpus(ctx context.Context, p target) ([]finding, error) {
	var nodes corev1.NodeList
	if err := p.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	total, with, labelled := resource.Quantity{}, 0, 0
	for i := range nodes.Items {
		offered := nodes.Items[i].Status.Allocatable["nvidia.com/gpu"]
		if offered.IsZero() {
			continue
		}
		with++
		total.Add(offered)
		if nodes.Items[i].Labels["nvidia.com/gpu.product"] != "" {
			labelled++
		}
	}
	switch {
	case with == 0:
		return []finding{{verdict: note, what: "no node offers nvidia.com/gpu", todo: "install NVIDIA's GPU operator or device plugin"}}, nil
	case labelled < with:
		return []finding{{verdict: note, what: fmt.Sprintf("%s GPUs on %d of %d nodes", total.String(), with, len(nodes.Items)), todo: "without GPU feature discovery a request has to say its hardware"}}, nil
	default:
		return []finding{{what: fmt.Sprintf("%s GPUs on %d of %d nodes", total.String(), with, len(nodes.Items))}}, nil
	}
}

func graphs(ctx context.Context, p target) ([]finding, error) {
	var list v1alpha1.DynamoGraphDeploymentList
	if err := p.List(ctx, &list); err != nil {
		return nil, nil //nolint:nilerr // definitions that are missing were told before
	}
	ready, findings := 0, []finding(nil)
	for i := range list.Items {
		if list.Items[i].Status.State == v1alpha1.GraphStateSuccessful {
			ready++
			continue
		}
		name, namespace := list.Items[i].Name, list.Items[i].Namespace
		findings = append(findings, finding{verdict: note, what: fmt.Sprintf("graph %s/%s is not ready", namespace, name), todo: "kubectl dynamo why " + name + " -n " + namespace})
	}
	return append([]finding{{what: fmt.Sprintf("%d of %d graphs are ready", ready, len(list.Items))}}, findings...), nil
}
