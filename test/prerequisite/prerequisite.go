// Package prerequisite tells what the pods of a manifest expect to find and it does not
// bring: Secrets, claims, devices, and nodes with labels and resources.
//
// It is pure, and goes by the shape of references, which is that of pods in both
// versions of the API, so that a manifest nobody has seen is supplied as well. It
// does not judge whether a reference makes sense.
package prerequisite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// set is names, each with the keys that are asked for.
type set map[string]map[string]bool

func (s set) add(name string, keys ...string) {
	if name == "" {
		return
	}
	if s[name] == nil {
		s[name] = map[string]bool{}
	}
	for _, key := range keys {
		if key != "" {
			s[name][key] = true
		}
	}
}

// Needs is what pods expect to find: objects that they name, and nodes.
type Needs struct {
	// Topologies are labels of which every node has some value, Resources what
	// every node has some of, beside what each Kubernetes node has.
	Topologies, Resources []string

	secrets, configMaps, claims, accounts set
	runtimeClasses, priorityClasses       set
	topologies, resources                 set
	templates, shared                     map[string]devices // claims of devices, a pod's own and shared ones
	pools                                 routerPools
	engines                               engineFiles
	labels                                []map[string]string
}

// devices is what a claim asks for.
type devices struct {
	kind     deviceKind
	requests map[string]bool // by name, if containers name them
}

// Of reads documents.
func Of(documents ...map[string]any) Needs {
	n := Needs{
		secrets: set{}, configMaps: set{}, claims: set{}, accounts: set{}, runtimeClasses: set{}, priorityClasses: set{},
		topologies: set{}, resources: set{}, templates: map[string]devices{}, shared: map[string]devices{},
		engines: engineFiles{},
	}
	for _, d := range documents {
		n.read(d)
	}
	n.Topologies, n.Resources = slices.Sorted(maps.Keys(n.topologies)), slices.Sorted(maps.Keys(n.resources))
	return n
}

func (n *Needs) read(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n.read(item)
		}
	case map[string]any:
		for key, member := range v {
			n.reference(key, member)
			n.read(member)
		}
		if isPodSpec(v) {
			n.pod(v)
		}
		n.component(v)
	}
}

// reference is what one field of an object refers to, if anything.
func (n *Needs) reference(key string, value any) {
	name, _ := value.(string)
	object, _ := value.(map[string]any)
	switch key {
	case "envFromSecret":
		n.secrets.add(name)
	case "secretKeyRef", "secretRef", "secret":
		n.secrets.add(first(object, "name", "secretName"), keysOf(object)...)
	case "configMapKeyRef", "configMapRef", "configMap":
		n.configMaps.add(first(object, "name"), keysOf(object)...)
	case "persistentVolumeClaim":
		n.claims.add(first(object, "claimName"))
	case "pvcName":
		n.claims.add(name)
	case "pvcs":
		for _, pvc := range list(value) {
			n.claims.add(first(pvc, "name"))
		}
	case "services": // of v1alpha1, whose mounts are of claims
		for _, service := range object {
			service, _ := service.(map[string]any)
			for _, mount := range list(service["volumeMounts"]) {
				n.claims.add(first(mount, "name"))
			}
		}
	case "serviceAccountName":
		n.accounts.add(name)
	case "runtimeClassName":
		n.runtimeClasses.add(name)
	case "priorityClassName":
		n.priorityClasses.add(name)
	case "topologyKey":
		n.topologies.add(name)
	case "limits", "requests", "custom":
		for resource := range object {
			if strings.Contains(resource, "/") {
				n.resources.add(resource)
			}
		}
	}
}

func keysOf(reference map[string]any) []string {
	keys := []string{first(reference, "key")}
	for _, item := range list(reference["items"]) {
		keys = append(keys, first(item, "key"))
	}
	return keys
}

// isPodSpec tells the specification of a pod, whole or in part.
func isPodSpec(v map[string]any) bool {
	return slices.ContainsFunc([]string{"containers", "mainContainer", "nodeSelector", "affinity", "resourceClaims"}, func(key string) bool {
		switch v[key].(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}

// pod reads what concerns more than one field of a pod.
func (n *Needs) pod(spec map[string]any) {
	containers := slices.Concat(list(spec["containers"]), list(spec["initContainers"]))
	if main, ok := spec["mainContainer"].(map[string]any); ok {
		containers = append(containers, main)
	}
	volumes := map[string]map[string]any{}
	for _, v := range list(spec["volumes"]) {
		volumes[first(v, "name")] = v
	}
	for _, container := range containers {
		n.router(container)
		for _, mount := range list(container["volumeMounts"]) {
			volume, known := volumes[first(mount, "name")]
			if !known { // of the claim of its name
				n.claims.add(first(mount, "name"))
			}
			if source, ok := volume["configMap"].(map[string]any); ok {
				n.configMaps.add(first(source, "name"), append(filesBelow(first(mount, "mountPath"), container), first(mount, "subPath"))...)
			}
			if source, ok := volume["secret"].(map[string]any); ok {
				n.secrets.add(first(source, "secretName"), first(mount, "subPath"))
			}
		}
	}
	for _, claim := range list(spec["resourceClaims"]) {
		n.claim(claim, spec, containers)
	}
	if labels := nodeLabels(spec); len(labels) > 0 {
		n.labels = append(n.labels, labels)
	}
}

// filesBelow are the files that a container's command line names in a folder.
func filesBelow(folder string, container map[string]any) []string {
	var files []string
	for _, word := range words(container) {
		dir, file := path.Split(word)
		if folder != "" && path.Clean(dir) == path.Clean(folder) && file != "" {
			files = append(files, file)
		}
	}
	return files
}

// words are those of a container's command line, of a script in it too.
func words(container map[string]any) []string {
	var all []string
	for _, key := range []string{"command", "args"} {
		items, _ := container[key].([]any)
		for _, item := range items {
			all = append(all, strings.FieldsFunc(fmt.Sprint(item), func(r rune) bool { return strings.ContainsRune(" \t\n\"'=", r) })...)
		}
	}
	return all
}

// claim reads one resource claim of a pod. What kind of device a claim that is
// only named asks for, its name and the pod tell.
func (n *Needs) claim(claim, spec map[string]any, containers []map[string]any) {
	d := devices{kind: kindOf(first(claim, "resourceClaimTemplateName", "resourceClaimName"), spec), requests: map[string]bool{}}
	for _, container := range containers {
		resources, _ := container["resources"].(map[string]any)
		for _, used := range list(resources["claims"]) {
			if request := first(used, "request"); request != "" && first(used, "name") == first(claim, "name") {
				d.requests[request] = true
			}
		}
	}
	for at, known := range map[string]map[string]devices{
		first(claim, "resourceClaimTemplateName"): n.templates, first(claim, "resourceClaimName"): n.shared,
	} {
		if at != "" {
			maps.Copy(d.requests, known[at].requests)
			known[at] = d
		}
	}
}

// deviceKind is a sort of device, by the parts of its DeviceClass's name.
type deviceKind []string

var (
	channel   = deviceKind{"channel"}
	nvidiaGPU = deviceKind{"gpu.", "nvidia"}
	intelGPU  = deviceKind{"gpu.", "intel"}
)

func kindOf(name string, spec map[string]any) deviceKind {
	text, _ := json.Marshal(spec) // it was read from JSON
	switch {
	case strings.Contains(name, "channel"):
		return channel
	case strings.Contains(name+string(text), "xpu"):
		return intelGPU
	}
	return nvidiaGPU
}

// class is the DeviceClass of the kind that a cluster has.
func (k deviceKind) class(classes []string) (string, error) {
	for _, class := range classes {
		if !slices.ContainsFunc(k, func(part string) bool { return !strings.Contains(class, part) }) {
			return class, nil
		}
	}
	return "", fmt.Errorf("no DeviceClass of %v with all of %q in its name", classes, []string(k))
}

// nodeLabels are those that a pod's node must have. Of several values any will do.
func nodeLabels(spec map[string]any) map[string]string {
	labels := map[string]string{}
	selector, _ := spec["nodeSelector"].(map[string]any)
	for key, value := range selector {
		labels[key] = fmt.Sprint(value)
	}
	terms, _, err := unstructured.NestedSlice(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	if err != nil || len(terms) == 0 {
		return labels
	}
	term, _ := terms[0].(map[string]any)
	for _, e := range list(term["matchExpressions"]) {
		values, _ := e["values"].([]any)
		switch key := first(e, "key"); {
		case first(e, "operator") == string(corev1.NodeSelectorOpIn) && len(values) > 0:
			labels[key] = fmt.Sprint(values[0])
		case first(e, "operator") == string(corev1.NodeSelectorOpExists):
			labels[key] = "true"
		}
	}
	return labels
}

// first is the first of the members that is a string and not empty.
func first(object map[string]any, keys ...string) string {
	for _, key := range keys {
		if text, _ := object[key].(string); text != "" {
			return text
		}
	}
	return ""
}

// list is the objects of a list.
func list(value any) []map[string]any {
	items, _ := value.([]any)
	var objects []map[string]any
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// Objects are what the documents refer to, for a namespace of a cluster that has
// these DeviceClasses. Values of keys are tokens and configurations: empty ones,
// except where an engine does not start with it.
func (n *Needs) Objects(namespace string, classes []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	add := func(apiVersion, kind, in, name string, fields map[string]any) {
		o := &unstructured.Unstructured{Object: fields}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetName(name)
		o.SetNamespace(in)
		objects = append(objects, o)
	}
	for _, name := range slices.Sorted(maps.Keys(n.secrets)) {
		add("v1", "Secret", namespace, name, map[string]any{"stringData": valued(n.secrets[name], "value", "HF_TOKEN", "token")})
	}
	for _, name := range slices.Sorted(maps.Keys(n.configMaps)) {
		data := valued(n.configMaps[name], n.pools.configuration())
		n.engines.fill(name, data)
		add("v1", "ConfigMap", namespace, name, map[string]any{"data": data})
	}
	for _, name := range slices.Sorted(maps.Keys(n.claims)) {
		add("v1", "PersistentVolumeClaim", namespace, name, map[string]any{"spec": map[string]any{
			"accessModes": []any{string(corev1.ReadWriteMany)}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}})
	}
	for _, name := range slices.Sorted(maps.Keys(n.accounts)) {
		add("v1", "ServiceAccount", namespace, name, map[string]any{})
	}
	for _, name := range slices.Sorted(maps.Keys(n.runtimeClasses)) {
		add("node.k8s.io/v1", "RuntimeClass", "", name, map[string]any{"handler": name})
	}
	for _, name := range slices.Sorted(maps.Keys(n.priorityClasses)) {
		add("scheduling.k8s.io/v1", "PriorityClass", "", name, map[string]any{"value": int64(1000)})
	}
	for _, name := range slices.Sorted(maps.Keys(n.templates)) {
		spec, err := n.templates[name].spec(classes)
		if err != nil {
			return nil, fmt.Errorf("resource claim template %s: %w", name, err)
		}
		add("resource.k8s.io/v1", "ResourceClaimTemplate", namespace, name, map[string]any{"spec": map[string]any{"spec": spec}})
	}
	for _, name := range slices.Sorted(maps.Keys(n.shared)) {
		spec, err := n.shared[name].spec(classes)
		if err != nil {
			return nil, fmt.Errorf("resource claim %s: %w", name, err)
		}
		add("resource.k8s.io/v1", "ResourceClaim", namespace, name, map[string]any{"spec": spec})
	}
	return objects, nil
}

func valued(keys map[string]bool, value string, further ...string) map[string]any {
	data := map[string]any{}
	for key := range keys {
		data[key] = value
	}
	for _, key := range further {
		data[key] = value
	}
	return data
}

// spec asks for one device for each request.
func (d devices) spec(classes []string) (map[string]any, error) {
	class, err := d.kind.class(classes)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(d.requests))
	if len(names) == 0 {
		names = []string{"device"}
	}
	var requests []any
	for _, name := range names {
		requests = append(requests, map[string]any{"name": name, "exactly": map[string]any{"deviceClassName": class}})
	}
	return map[string]any{"devices": map[string]any{"requests": requests}}, nil
}

// Pool is nodes with the same labels.
type Pool struct {
	Labels map[string]string
	Nodes  int
}

// Pools are those on which each pod finds a node, if so many pods want one.
func (n *Needs) Pools(pods int) []Pool {
	var pools []Pool
	for _, labels := range n.labels {
		pools = append(pools, Pool{Labels: labels, Nodes: pods})
	}
	return pools
}

// Merge puts labels that do not contradict each other on the same nodes. The
// longest come first: what asks for less fits on them. There are nodes for the
// largest of those pools that are used at once.
func Merge(pools []Pool, atOnce int) []Pool {
	wanted := slices.Clone(pools)
	slices.SortStableFunc(wanted, func(a, b Pool) int {
		return cmp.Or(len(b.Labels)-len(a.Labels), strings.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)))
	})
	var merged []Pool
	var sizes [][]int
	for _, want := range wanted {
		at := slices.IndexFunc(merged, func(have Pool) bool { return agree(have.Labels, want.Labels) })
		if at < 0 {
			at = len(merged)
			merged, sizes = append(merged, Pool{Labels: map[string]string{}}), append(sizes, nil)
		}
		maps.Copy(merged[at].Labels, want.Labels)
		sizes[at] = append(sizes[at], want.Nodes)
	}
	for at := range merged {
		merged[at].Nodes = Largest(sizes[at], atOnce)
	}
	return merged
}

// Largest is the sum of the largest numbers, so many of them.
func Largest(numbers []int, count int) int {
	sorted := slices.Sorted(slices.Values(numbers))
	sum := 0
	for _, n := range sorted[max(0, len(sorted)-count):] {
		sum += n
	}
	return sum
}

func agree(a, b map[string]string) bool {
	for key, value := range a {
		if other, has := b[key]; has && other != value {
			return false
		}
	}
	return true
}
