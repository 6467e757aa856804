package admission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	graph     = "DynamoGraphDeployment"
	component = "DynamoComponentDeployment"
	model     = "DynamoModel"
	request   = "DynamoGraphDeploymentRequest"
	adapter   = "DynamoGraphDeploymentScalingAdapter"
	metadata  = "DynamoWorkerMetadata"
)

func TestSchemaRulesOnCreate(t *testing.T) {
	cases := map[string]struct {
		kind string
		spec string
		// refused is the field the refusal names; empty means admitted. The
		// server writes a map's key as [A] if a CEL rule refuses and as .A if a
		// type or bound does.
		refused string
	}{
		"a graph needs a spec":                                      {kind: graph, spec: `null`, refused: "spec"},
		"a graph needs services":                                    {kind: graph, spec: `{}`, refused: "spec.services"},
		"a graph needs at least one service":                        {kind: graph, spec: `{services: {}}`, refused: "spec.services"},
		"a graph has at most 25 services":                           {kind: graph, spec: `{services: {` + services(26) + `}}`, refused: "spec.services"},
		"a graph may have 25 services":                              {kind: graph, spec: `{services: {` + services(25) + `}}`},
		"a service may be empty":                                    {kind: graph, spec: `{services: {A: {}}}`},
		"a service may be null":                                     {kind: graph, spec: `{services: {A: null}}`},
		"a component may be empty":                                  {kind: component, spec: `{}`},
		"a component may lack a spec":                               {kind: component, spec: `null`},
		"an unknown backend is refused":                             {kind: graph, spec: `{backendFramework: tgi, services: {A: {}}}`, refused: "spec.backendFramework"},
		"an empty backend is refused":                               {kind: graph, spec: `{backendFramework: "", services: {A: {}}}`, refused: "spec.backendFramework"},
		"any component type is admitted":                            {kind: graph, spec: `{services: {A: {componentType: anything}}}`},
		"a claim needs a name":                                      {kind: graph, spec: `{services: {A: {}}, pvcs: [{create: false}]}`, refused: "spec.pvcs[0].name"},
		"a claim to use needs only a name":                          {kind: graph, spec: `{services: {A: {}}, pvcs: [{name: c}]}`},
		"a claim to create needs a size":                            {kind: graph, spec: `{services: {A: {}}, pvcs: [{name: c, create: true, storageClass: s, volumeAccessMode: ReadWriteMany}]}`, refused: "spec.pvcs[0].size"},
		"a claim to create needs a storage class":                   {kind: graph, spec: `{services: {A: {}}, pvcs: [{name: c, create: true, size: 1Gi, storageClass: "", volumeAccessMode: ReadWriteMany}]}`, refused: "spec.pvcs[0].storageClass"},
		"a claim to create needs an access mode":                    {kind: graph, spec: `{services: {A: {}}, pvcs: [{name: c, create: true, size: 1Gi, storageClass: s}]}`, refused: "spec.pvcs[0].volumeAccessMode"},
		"a claim to create may be complete":                         {kind: graph, spec: `{services: {A: {}}, pvcs: [{name: c, create: true, size: 1Gi, storageClass: s, volumeAccessMode: ReadWriteMany}]}`},
		"a stored zero size of a used claim is admitted":            {kind: graph, spec: `{services: {A: {}}, pvcs: [{name: c, size: "0"}]}`},
		"a restart needs an id":                                     {kind: graph, spec: `{services: {A: {}}, restart: {id: ""}}`, refused: "spec.restart.id"},
		"a parallel restart has no order":                           {kind: graph, spec: `{services: {A: {}}, restart: {id: a, strategy: {type: Parallel, order: [A]}}}`, refused: "spec.restart.strategy.order"},
		"a parallel restart may have an empty order":                {kind: graph, spec: `{services: {A: {}}, restart: {id: a, strategy: {type: Parallel, order: []}}}`},
		"a sequential restart may have an order":                    {kind: graph, spec: `{services: {A: {}}, restart: {id: a, strategy: {order: [A]}}}`},
		"replicas may be zero":                                      {kind: graph, spec: `{services: {A: {replicas: 0}}}`},
		"replicas are not negative":                                 {kind: graph, spec: `{services: {A: {replicas: -1}}}`, refused: "spec.services.A.replicas"},
		"replicas of a component are not negative":                  {kind: component, spec: `{replicas: -1}`, refused: "spec.replicas"},
		"an enabled ingress needs a host":                           {kind: graph, spec: `{services: {A: {ingress: {enabled: true}}}}`, refused: "spec.services[A].ingress.host"},
		"an enabled ingress needs more than an empty host":          {kind: component, spec: `{ingress: {enabled: true, host: ""}}`, refused: "spec.ingress.host"},
		"a disabled ingress needs no host":                          {kind: graph, spec: `{services: {A: {ingress: {}}}}`},
		"an enabled ingress with a host is admitted":                {kind: graph, spec: `{services: {A: {ingress: {enabled: true, host: h}}}}`},
		"a mount needs a mount point":                               {kind: graph, spec: `{services: {A: {volumeMounts: [{name: c}]}}}`, refused: "spec.services[A].volumeMounts[0].mountPoint"},
		"a compilation cache needs no mount point":                  {kind: graph, spec: `{services: {A: {volumeMounts: [{name: c, useAsCompilationCache: true}]}}}`},
		"a mount need not be among the claims":                      {kind: graph, spec: `{services: {A: {volumeMounts: [{name: c, mountPoint: /m}]}}}`},
		"quantities of resources are strings":                       {kind: graph, spec: `{services: {A: {resources: {limits: {gpu: 1}}}}}`, refused: "spec.services.A.resources.limits.gpu"},
		"shared memory may be empty":                                {kind: graph, spec: `{services: {A: {sharedMemory: {}}}}`},
		"shared memory may be a stored zero":                        {kind: graph, spec: `{services: {A: {sharedMemory: {size: "0"}}}}`},
		"several nodes are at least two":                            {kind: graph, spec: `{services: {A: {multinode: {nodeCount: 1}}}}`, refused: "spec.services.A.multinode.nodeCount"},
		"a pod spec may have no containers":                         {kind: graph, spec: `{services: {A: {extraPodSpec: {hostNetwork: true}}}}`},
		"a main container may have no name":                         {kind: graph, spec: `{services: {A: {extraPodSpec: {mainContainer: {image: i}}}}}`},
		"a sidecar needs a name":                                    {kind: graph, spec: `{services: {A: {extraPodSpec: {containers: [{image: i}]}}}}`, refused: "spec.services.A.extraPodSpec.containers[0].name"},
		"duplicate variables of a service are admitted":             {kind: graph, spec: `{services: {A: {envs: [{name: a}, {name: a}]}}}`},
		"an endpoint picker needs a configuration":                  {kind: graph, spec: `{services: {A: {componentType: epp}}}`, refused: "spec.services[A].eppConfig"},
		"an endpoint picker needs more than an empty configuration": {kind: component, spec: `{componentType: epp, eppConfig: {}}`, refused: "spec.eppConfig"},
		"an endpoint picker has one configuration":                  {kind: graph, spec: `{services: {A: {componentType: epp, eppConfig: {configMapRef: {name: c, key: k}, config: {plugins: [], schedulingProfiles: []}}}}}`, refused: "spec.services[A].eppConfig"},
		"an endpoint picker may refer to a configuration":           {kind: graph, spec: `{services: {A: {componentType: epp, eppConfig: {configMapRef: {name: c, key: ""}}}}}`},
		"an endpoint picker needs plugins":                          {kind: graph, spec: `{services: {A: {componentType: epp, eppConfig: {config: {schedulingProfiles: []}}}}}`, refused: "spec.services.A.eppConfig.config.plugins"},
		"an endpoint picker needs profiles":                         {kind: graph, spec: `{services: {A: {componentType: epp, eppConfig: {config: {plugins: []}}}}}`, refused: "spec.services.A.eppConfig.config.schedulingProfiles"},
		"a plugin may have any parameters":                          {kind: graph, spec: `{services: {A: {componentType: epp, eppConfig: {config: {plugins: [{type: t, parameters: {deep: {er: 1}}}], schedulingProfiles: [{name: p, plugins: [{pluginRef: t, weight: 0.5}]}]}}}}}`},

		"a model needs a name":                    {kind: model, spec: `{modelName: "", baseModelName: b}`, refused: "spec.modelName"},
		"a model needs a base model":              {kind: model, spec: `{modelName: m, baseModelName: ""}`, refused: "spec.baseModelName"},
		"a base model needs no source":            {kind: model, spec: `{modelName: m, baseModelName: b}`},
		"a lora needs a source":                   {kind: model, spec: `{modelName: m, baseModelName: b, modelType: lora}`, refused: "spec.source"},
		"a lora is not fetched over http":         {kind: model, spec: `{modelName: m, baseModelName: b, modelType: lora, source: {uri: "http://x"}}`, refused: "spec.source.uri"},
		"a lora may come from s3":                 {kind: model, spec: `{modelName: m, baseModelName: b, modelType: lora, source: {uri: "s3://x"}}`},
		"a lora may come from hugging face":       {kind: model, spec: `{modelName: m, baseModelName: b, modelType: lora, source: {uri: "hf://x"}}`},
		"a lora may come from a file":             {kind: model, spec: `{modelName: m, baseModelName: b, modelType: lora, source: {uri: "file:///x"}}`},
		"a lora is fetched from a place":          {kind: model, spec: `{modelName: m, baseModelName: b, modelType: lora, source: {uri: "s3://"}}`, refused: "spec.source.uri"},
		"the name of a lora leads nowhere else":   {kind: model, spec: `{modelName: ../../engine/sleep, baseModelName: b, modelType: lora, source: {uri: "s3://x"}}`, refused: "spec.modelName"},
		"the name of a lora has no empty parts":   {kind: model, spec: `{modelName: a//b, baseModelName: b, modelType: lora, source: {uri: "s3://x"}}`, refused: "spec.modelName"},
		"the name of a lora may have parts":       {kind: model, spec: `{modelName: org/a..b, baseModelName: b, modelType: lora, source: {uri: "s3://x"}}`},
		"an unknown model type is refused":        {kind: model, spec: `{modelName: m, baseModelName: b, modelType: dora}`, refused: "spec.modelType"},
		"the source of a base model is not read":  {kind: model, spec: `{modelName: m, baseModelName: b, source: {uri: "http://x"}}`},
		"a request needs a profiler image":        {kind: request, spec: `{model: m, backend: vllm, profilingConfig: {config: {}}}`, refused: "spec.profilingConfig.profilerImage"},
		"a profiler image is not empty":           {kind: request, spec: `{model: m, backend: vllm, profilingConfig: {config: {}, profilerImage: ""}}`, refused: "spec.profilingConfig.profilerImage"},
		"a request needs a configuration":         {kind: request, spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: i}}`, refused: "spec.profilingConfig.config"},
		"a configuration is an object":            {kind: request, spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: i, config: [1]}}`, refused: "spec.profilingConfig.config"},
		"a configuration may be empty":            {kind: request, spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: i, config: {}}}`},
		"a configuration may hold anything":       {kind: request, spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: i, config: {sweep: {a: [1]}}}}`},
		"a request needs a known backend":         {kind: request, spec: `{model: m, backend: tgi, profilingConfig: {profilerImage: i, config: {}}}`, refused: "spec.backend"},
		"an adapter needs a spec":                 {kind: adapter, spec: `null`, refused: "spec"},
		"an adapter needs a graph":                {kind: adapter, spec: `{replicas: 1, dgdRef: {name: "", serviceName: A}}`, refused: "spec.dgdRef.name"},
		"an adapter needs a service":              {kind: adapter, spec: `{replicas: 1, dgdRef: {name: g, serviceName: ""}}`, refused: "spec.dgdRef.serviceName"},
		"an adapter does not scale below zero":    {kind: adapter, spec: `{replicas: -1, dgdRef: {name: g, serviceName: A}}`, refused: "spec.replicas"},
		"an adapter may scale to zero":            {kind: adapter, spec: `{replicas: 0, dgdRef: {name: g, serviceName: A}}`},
		"a worker's document is its own":          {kind: metadata, spec: `{data: {instances: [{id: "12345678901234567890"}]}}`},
		"a worker's metadata needs some document": {kind: metadata, spec: `{}`, refused: "spec.data"},
	}
	server := needServer(t)
	namespace := server.namespace(t)
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			err := server.Create(t.Context(), object(t, namespace, c.kind, c.spec), client.DryRunAll)
			checkVerdict(t, err, c.refused)
		})
	}
}

func TestSchemaRulesOnUpdate(t *testing.T) {
	cases := map[string]struct {
		kind     string
		from, to string
		refused  string
	}{
		"the backend of a graph cannot change":        {kind: graph, from: `{backendFramework: vllm, services: {A: {}}}`, to: `{backendFramework: sglang, services: {A: {}}}`, refused: "spec.backendFramework"},
		"the backend of a graph cannot be set later":  {kind: graph, from: `{services: {A: {}}}`, to: `{backendFramework: sglang, services: {A: {}}}`, refused: "spec.backendFramework"},
		"the backend of a graph cannot be removed":    {kind: graph, from: `{backendFramework: vllm, services: {A: {}}}`, to: `{services: {A: {}}}`, refused: "spec.backendFramework"},
		"a graph may change under the same backend":   {kind: graph, from: `{backendFramework: vllm, services: {A: {}}}`, to: `{backendFramework: vllm, services: {A: {replicas: 2}}}`},
		"services may come and go":                    {kind: graph, from: `{services: {A: {}, B: null}}`, to: `{services: {A: {}, C: null}}`},
		"the backend of a component cannot change":    {kind: component, from: `{backendFramework: vllm}`, to: `{backendFramework: sglang}`, refused: "spec.backendFramework"},
		"the backend of a component stays unset":      {kind: component, from: `{}`, to: `{backendFramework: sglang}`, refused: "spec.backendFramework"},
		"the type of a model cannot change":           {kind: model, from: `{modelName: m, baseModelName: b}`, to: `{modelName: m, baseModelName: b, modelType: adapter}`, refused: "spec.modelType"},
		"the base of a model cannot change":           {kind: model, from: `{modelName: m, baseModelName: b}`, to: `{modelName: m, baseModelName: c}`, refused: "spec.baseModelName"},
		"the name of a model can change":              {kind: model, from: `{modelName: m, baseModelName: b}`, to: `{modelName: other, baseModelName: b}`},
		"an adapter stays with its graph":             {kind: adapter, from: `{replicas: 1, dgdRef: {name: g, serviceName: A}}`, to: `{replicas: 1, dgdRef: {name: h, serviceName: A}}`, refused: "spec.dgdRef"},
		"an adapter stays with its service":           {kind: adapter, from: `{replicas: 1, dgdRef: {name: g, serviceName: A}}`, to: `{replicas: 1, dgdRef: {name: g, serviceName: B}}`, refused: "spec.dgdRef"},
		"an adapter may scale":                        {kind: adapter, from: `{replicas: 1, dgdRef: {name: g, serviceName: A}}`, to: `{replicas: 5, dgdRef: {name: g, serviceName: A}}`},
		"an ingress is checked in a changed service":  {kind: graph, from: `{services: {A: {}}}`, to: `{services: {A: {ingress: {enabled: true}}}}`, refused: "spec.services[A].ingress.host"},
		"a component may be emptied but its backend":  {kind: component, from: `{backendFramework: vllm, replicas: 2}`, to: `{backendFramework: vllm}`},
		"a request is changed freely by its schema":   {kind: request, from: `{model: m, backend: vllm, profilingConfig: {profilerImage: i, config: {}}}`, to: `{model: other, backend: trtllm, profilingConfig: {profilerImage: j, config: {a: 1}}}`},
		"the document of a worker is changed freely":  {kind: metadata, from: `{data: {a: 1}}`, to: `{data: {b: [2]}}`},
		"a claim may be added to a running graph":     {kind: graph, from: `{services: {A: {}}}`, to: `{services: {A: {}}, pvcs: [{name: c}]}`},
		"a restart may be asked of a running graph":   {kind: graph, from: `{services: {A: {}}}`, to: `{services: {A: {}}, restart: {id: a}}`},
		"a running graph keeps at least one service":  {kind: graph, from: `{services: {A: {}}}`, to: `{services: {}}`, refused: "spec.services"},
		"a null service may be filled in afterwards":  {kind: graph, from: `{services: {A: null}}`, to: `{services: {A: {replicas: 2}}}`},
		"a service may become null afterwards":        {kind: graph, from: `{services: {A: {replicas: 2}}}`, to: `{services: {A: null}}`},
		"an ingress may become null afterwards":       {kind: graph, from: `{services: {A: {ingress: {}}}}`, to: `{services: {A: {ingress: null}}}`},
		"a component's ingress may be null":           {kind: component, from: `{ingress: null}`, to: `{ingress: {enabled: true, host: h}}`},
		"a null component type is no endpoint picker": {kind: graph, from: `{services: {A: {componentType: null}}}`, to: `{services: {A: {componentType: worker}}}`},
	}
	server := needServer(t)
	namespace := server.namespace(t)
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			live := object(t, namespace, c.kind, c.from)
			if err := server.Create(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			live.Object["spec"] = object(t, namespace, c.kind, c.to).Object["spec"]
			checkVerdict(t, server.Update(t.Context(), live, client.DryRunAll), c.refused)
		})
	}
}

// checkVerdict holds an answer of the API server against the field it should
// refuse, or against no refusal.
func checkVerdict(t *testing.T, err error, refused string) {
	t.Helper()
	if refused == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a refusal of %s", err, refused)
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	if !slices.Contains(fields, refused) {
		t.Errorf("refused are %q, want %s: %v", fields, refused, err)
	}
}

func object(t *testing.T, namespace, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"generateName": "rule-", "namespace": namespace},
	}}
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(spec), &decoded); err != nil {
		t.Fatal(err)
	}
	if decoded != nil {
		o.Object["spec"] = decoded
	}
	return o
}

// services lists n empty services in YAML flow style.
func services(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = string(rune('a'+i)) + ": {}"
	}
	return strings.Join(names, ", ")
}
