// Package kube is a planner's door to the cluster: it reads one graph and where its pods
// are, and writes how many replicas two of its services are to have. It decides nothing.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// FieldManager owns what a planner writes.
const FieldManager = "dynamo-planner"

var endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")

// Client knows one namespace.
type Client struct {
	Objects   dynamic.Interface
	Namespace string
	// Version is that of the API that graphs are read and written in.
	Version schema.GroupVersion
}

// Connect finds the cluster by a kubeconfig file, or as a pod when it is empty. An empty
// namespace is the pod's own.
func Connect(kubeconfig, namespace string) (*Client, error) {
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&rules, &clientcmd.ConfigOverrides{})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	if namespace == "" {
		if namespace, _, err = loaded.Namespace(); err != nil {
			return nil, fmt.Errorf("find the namespace: %w", err)
		}
	}
	config.UserAgent = FieldManager
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := Version(served)
	if err != nil {
		return nil, err
	}
	return &Client{Objects: objects, Namespace: namespace, Version: version}, nil
}

// Version is the one of the API to speak: v1alpha1, which every release of the operator
// has served, or else v1beta1.
func Version(served discovery.ServerResourcesInterface) (schema.GroupVersion, error) {
	versions := []schema.GroupVersion{v1alpha1.SchemeGroupVersion, v1beta1.SchemeGroupVersion}
	for _, version := range versions {
		list, err := served.ServerResourcesForGroupVersion(version.String())
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return schema.GroupVersion{}, fmt.Errorf("ask which versions of graphs are served: %w", err)
		case slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == graphs }):
			return version, nil
		}
	}
	return schema.GroupVersion{}, errors.New("the cluster serves no DynamoGraphDeployments")
}

const (
	graphs   = "dynamographdeployments"
	adapters = "dynamographdeploymentscalingadapters"
)

// Graph is a graph as it is now.
type Graph struct {
	*graph.Graph
	Status v1alpha1.DynamoGraphDeploymentStatus
	// Wanted are the replicas that are asked for, by service: its adapter's word if it
	// has one.
	Wanted map[string]int
	// Plan is the last one that it was told.
	Plan string

	resourceVersion string
	annotated       bool
	order           []string // of components in v1beta1
	adapters        map[string]string
}

// Graph reads a graph.
func (c *Client) Graph(ctx context.Context, name string) (*Graph, error) {
	object, err := c.Objects.Resource(c.Version.WithResource(graphs)).Namespace(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read graph %s/%s: %w", c.Namespace, name, err)
	}
	dgd, order, err := c.decode(object)
	if err != nil {
		return nil, fmt.Errorf("read graph %s/%s: %w", c.Namespace, name, err)
	}
	meant, err := graph.FromGraphDeployment(dgd, graph.Defaults{})
	if err != nil {
		return nil, fmt.Errorf("graph %s/%s: %w", c.Namespace, name, err)
	}
	g := &Graph{
		Graph: meant, Status: dgd.Status, Wanted: map[string]int{}, adapters: map[string]string{}, order: order,
		Plan: dgd.Annotations[v1alpha1.AnnotationScalePlan], resourceVersion: object.GetResourceVersion(), annotated: object.GetAnnotations() != nil,
	}
	for _, component := range meant.Components {
		g.Wanted[component.Name] = int(component.Replicas)
	}
	for _, a := range meant.Adapters {
		adapter, err := c.Objects.Resource(c.Version.WithResource(adapters)).Namespace(c.Namespace).Get(ctx, a.ObjectName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // the operator has not made it yet: the graph's word counts
		}
		if err != nil {
			return nil, fmt.Errorf("read adapter %s/%s: %w", c.Namespace, a.ObjectName, err)
		}
		g.adapters[a.Service] = a.ObjectName
		if n, found, err := unstructured.NestedInt64(adapter.Object, "spec", "replicas"); found && err == nil {
			g.Wanted[a.Service] = int(n)
		}
	}
	return g, nil
}

// decode reads a graph of either version.
func (c *Client) decode(object *unstructured.Unstructured) (*v1alpha1.DynamoGraphDeployment, []string, error) {
	if c.Version == v1alpha1.SchemeGroupVersion {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		return dgd, nil, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, dgd)
	}
	beta := &v1beta1.DynamoGraphDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, beta); err != nil {
		return nil, nil, err
	}
	var order []string
	for i := range beta.Spec.Components {
		order = append(order, beta.Spec.Components[i].Name)
	}
	dgd, _ := conversion.GraphToAlpha(beta)
	return dgd, order, nil
}

// Places are where the pods of components are, and how many of each have a node and are
// ending.
type Places struct {
	Frontends []netip.AddrPort
	// Workers are where those that are ready tell their load, by component.
	Workers map[string][]netip.AddrPort
	// Placed are those that do not end and that a Service lists, so that they have an
	// address, and with it a node; both are by component.
	Placed, Ending map[string]int
}

// Places finds frontends and workers that are ready, and pods that have a node and that end, by the
// EndpointSlices of components.
func (c *Client) Places(ctx context.Context, components []graph.Component) (Places, error) {
	places := Places{Workers: map[string][]netip.AddrPort{}, Placed: map[string]int{}, Ending: map[string]int{}}
	found, err := c.slices(ctx, components)
	if err != nil {
		return places, err
	}
	ends := map[pod]bool{}
	for i := range components {
		component := components[i]
		for _, slice := range found[component.Name] {
			for _, e := range slice.Endpoints {
				ending := is(e.Conditions.Terminating, false)
				at := pod{component.Name, identity(e)}
				ends[at] = ends[at] || ending
				if ending || !is(e.Conditions.Ready, true) || len(e.Addresses) == 0 {
					continue
				}
				address, err := netip.ParseAddr(e.Addresses[0])
				switch {
				case err != nil:
				case component.Role == graph.RoleFrontend:
					places.Frontends = append(places.Frontends, netip.AddrPortFrom(address, frontendPort(slice.Ports, component)))
				default:
					places.Workers[component.Name] = append(places.Workers[component.Name], netip.AddrPortFrom(address, systemPort(slice.Ports)))
				}
			}
		}
		if found := places.Workers[component.Name]; len(found) > 0 {
			places.Workers[component.Name] = unique(found)
		}
	}
	for at, ending := range ends {
		if ending {
			places.Ending[at.component]++
		} else {
			places.Placed[at.component]++
		}
	}
	places.Frontends = unique(places.Frontends)
	return places, nil
}

// unique are addresses in order: several Services may list the same.
func unique(all []netip.AddrPort) []netip.AddrPort {
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all)
}

// pod is one of a component. Services of several generations select the pods of all of them.
type pod struct{ component, id string }

// identity tells endpoints apart: pods on the network of their node share its address.
func identity(e discoveryv1.Endpoint) string {
	if e.TargetRef != nil && e.TargetRef.Name != "" {
		return e.TargetRef.Name
	}
	return strings.Join(e.Addresses, ",")
}

// slices are the EndpointSlices of components, by component. They have the labels of their
// Services. Workers that are named after a generation have another Service than the graph's
// spec alone tells, and are known by the labels of graph and component; Services under Grove
// have none of these, and the same name always.
func (c *Client) slices(ctx context.Context, components []graph.Component) (map[string][]discoveryv1.EndpointSlice, error) {
	found, seen := map[string][]discoveryv1.EndpointSlice{}, map[string]bool{}
	if len(components) == 0 {
		return found, nil
	}
	named, labelled := map[string]string{}, map[string]string{}
	for _, component := range components {
		named[component.ServiceName], labelled[component.Name] = component.Name, component.Name
	}
	for _, by := range []struct {
		label, within string
		component     map[string]string
	}{
		{discoveryv1.LabelServiceName, "", named},
		{v1alpha1.LabelComponent, "," + v1alpha1.LabelGraphName + "=" + components[0].Graph, labelled},
	} {
		selector := by.label + " in (" + strings.Join(slices.Sorted(maps.Keys(by.component)), ",") + ")" + by.within
		list, err := c.Objects.Resource(endpointSlices).Namespace(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, fmt.Errorf("list EndpointSlices of %s: %w", c.Namespace, err)
		}
		for i := range list.Items {
			slice := discoveryv1.EndpointSlice{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &slice); err != nil {
				return nil, fmt.Errorf("EndpointSlice %s: %w", list.Items[i].GetName(), err)
			}
			if seen[slice.Name] {
				continue
			}
			seen[slice.Name] = true
			component := by.component[slice.Labels[by.label]]
			found[component] = append(found[component], slice)
		}
	}
	return found, nil
}

func is(value *bool, byDefault bool) bool {
	if value == nil {
		return byDefault
	}
	return *value
}

// Where frontends listen, and where workers tell about themselves, unless Services say.
const (
	defaultPort       = 8000
	defaultSystemPort = 9090
)

// systemPort is that of name system.
func systemPort(ports []discoveryv1.EndpointPort) uint16 {
	for _, p := range ports {
		if p.Name != nil && *p.Name == "system" && p.Port != nil && *p.Port > 0 && *p.Port < 1<<16 {
			return uint16(*p.Port)
		}
	}
	return defaultSystemPort
}

// frontendPort is that of name http, or the only one. A frontend whose type does not say
// that it is one has a Service for its health alone, or for no port that it has: it is
// asked where its arguments say that it listens.
func frontendPort(ports []discoveryv1.EndpointPort, frontend graph.Component) uint16 {
	for _, p := range ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		if p.Port != nil && (name == "http" || len(ports) == 1 && name != "system") && *p.Port > 0 && *p.Port < 1<<16 {
			return uint16(*p.Port)
		}
	}
	main := frontend.MainContainer()
	words := strings.Fields(strings.Join(slices.Concat(main.Command, main.Args), " "))
	if text, told := commandline.NewLooseArgs(words).Value("--http-port"); told {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil && port > 0 {
			return uint16(port)
		}
	}
	return defaultPort
}

// Scale writes how many replicas services are to have, and the plan that this is of:
// those with an adapter through it, the others in one patch of the graph. Whichever of
// several writes is lost, the next look finds it. A graph that was changed since it was
// read is left alone.
func (c *Client) Scale(ctx context.Context, g *Graph, replicas map[string]int, plan string) error {
	direct := map[string]int{}
	for _, service := range slices.SortedFunc(maps.Keys(replicas), g.before) {
		adapter, adapted := g.adapters[service]
		if !adapted {
			direct[service] = replicas[service]
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas[service])
		_, err := c.Objects.Resource(c.Version.WithResource(adapters)).Namespace(c.Namespace).
			Patch(ctx, adapter, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "scale")
		if err != nil {
			return fmt.Errorf("scale adapter %s/%s to %d: %w", c.Namespace, adapter, replicas[service], err)
		}
	}
	err := c.patchGraph(ctx, g, direct, plan)
	if apierrors.IsConflict(err) {
		// Somebody wrote its status meanwhile, as likely as not.
		fresh, again := c.Graph(ctx, g.Name)
		if again == nil && maps.Equal(fresh.Wanted, g.Wanted) && slices.Equal(fresh.order, g.order) {
			err = c.patchGraph(ctx, fresh, direct, plan)
		}
	}
	if err != nil && (len(direct) > 0 || len(replicas) == 0) {
		return fmt.Errorf("scale graph %s/%s: %w", c.Namespace, g.Name, err)
	}
	return nil // a plan beside adapters that is lost is told with the next decision
}

// before orders services as they are written, prefill first.
func (g *Graph) before(a, b string) int {
	prefill := func(service string) bool {
		return slices.ContainsFunc(g.Components, func(c graph.Component) bool {
			return c.Name == service && (c.Role == graph.RolePrefill || graph.RoleOf(c.SubType) == graph.RolePrefill)
		})
	}
	switch first, second := prefill(a), prefill(b); {
	case first && !second:
		return -1
	case second && !first:
		return 1
	}
	return strings.Compare(a, b)
}

func (c *Client) patchGraph(ctx context.Context, g *Graph, replicas map[string]int, plan string) error {
	kind, patch, err := c.patch(g, replicas, plan)
	if err != nil {
		return err
	}
	_, err = c.Objects.Resource(c.Version.WithResource(graphs)).Namespace(c.Namespace).
		Patch(ctx, g.Name, kind, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// patch is a merge patch of v1alpha1, where services are a map, and a JSON patch of
// v1beta1, where they are a list that a merge patch would replace.
func (c *Client) patch(g *Graph, replicas map[string]int, plan string) (types.PatchType, []byte, error) {
	if c.Version == v1alpha1.SchemeGroupVersion {
		patch := map[string]any{"metadata": map[string]any{
			"resourceVersion": g.resourceVersion, "annotations": map[string]any{v1alpha1.AnnotationScalePlan: plan},
		}}
		services := map[string]any{}
		for service, n := range replicas {
			services[service] = map[string]any{"replicas": n}
		}
		if len(services) > 0 {
			patch["spec"] = map[string]any{"services": services}
		}
		body, err := json.Marshal(patch)
		return types.MergePatchType, body, err
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{{"test", "/metadata/resourceVersion", g.resourceVersion}}
	if g.annotated {
		operations = append(operations, operation{"add", "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.AnnotationScalePlan, "/", "~1"), plan})
	} else {
		operations = append(operations, operation{"add", "/metadata/annotations", map[string]string{v1alpha1.AnnotationScalePlan: plan}})
	}
	for _, service := range slices.Sorted(maps.Keys(replicas)) {
		at := slices.Index(g.order, service)
		if at < 0 {
			return "", nil, fmt.Errorf("graph %s/%s has no component %s", c.Namespace, g.Name, service)
		}
		place := fmt.Sprintf("/spec/components/%d", at)
		operations = append(operations, operation{"test", place + "/name", service}, operation{"add", place + "/replicas", replicas[service]})
	}
	body, err := json.Marshal(operations)
	return types.JSONPatchType, body, err
}
