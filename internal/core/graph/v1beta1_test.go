package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

func readBeta(t *testing.T, spec string) *v1beta1.DynamoGraphDeployment {
	t.Helper()
	dgd := &v1beta1.DynamoGraphDeployment{}
	text := "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: chat, namespace: lab}\nspec: " + spec
	if err := yaml.UnmarshalStrict([]byte(text), dgd); err != nil {
		t.Fatal(err)
	}
	return dgd
}

func readAlpha(t *testing.T, spec string) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	text := "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: chat, namespace: lab}\nspec: " + spec
	if err := yaml.UnmarshalStrict([]byte(text), dgd); err != nil {
		t.Fatal(err)
	}
	return dgd
}

// A component is the same in either version, as far as both can say it, and is read
// from its stored form as from what the user wrote.
func TestTwins(t *testing.T) {
	cases := map[string]struct{ alpha, beta string }{
		"a frontend that says nothing": {
			`{services: {f: {componentType: frontend}}}`,
			`{components: [{name: f, type: frontend}]}`,
		},
		"a split worker is of a type of its own": {
			`{services: {w: {componentType: worker, subComponentType: prefill, replicas: 3, resources: {limits: {gpu: "2"}}, extraPodSpec: {mainContainer: {image: i, args: [python3 -m dynamo.vllm]}}}}}`,
			`{components: [{name: w, type: prefill, replicas: 3, podTemplate: {spec: {containers: [{name: main, image: i, args: [python3 -m dynamo.vllm], resources: {limits: {nvidia.com/gpu: 2}}}]}}}]}`,
		},
		"variables of the graph lie under those of the component": {
			`{envs: [{name: B, value: g}, {name: A, value: g}], services: {w: {componentType: worker, envs: [{name: A, value: c}]}}}`,
			`{env: [{name: B, value: g}, {name: A, value: g}], components: [{name: w, type: worker, podTemplate: {spec: {containers: [{name: main, env: [{name: A, value: c}]}]}}}]}`,
		},
		"a claim is mounted by its name": {
			`{services: {w: {componentType: worker, volumeMounts: [{name: models, mountPoint: /m}]}}}`,
			`{components: [{name: w, type: worker, podTemplate: {spec: {containers: [{name: main, volumeMounts: [{name: models, mountPath: /m}]}]}}}]}`,
		},
		"a compilation cache has the engine's path": {
			`{backendFramework: vllm, services: {w: {componentType: worker, volumeMounts: [{name: cache, useAsCompilationCache: true}]}}}`,
			`{backendFramework: vllm, components: [{name: w, type: worker, compilationCache: {pvcName: cache}}]}`,
		},
		"no shared memory": {
			`{services: {w: {componentType: worker, sharedMemory: {disabled: true}}}}`,
			`{components: [{name: w, type: worker, sharedMemorySize: "0"}]}`,
		},
		"a frontend beside a worker": {
			`{services: {w: {componentType: worker, frontendSidecar: {image: f, args: [a], envs: [{name: A, value: b}]}}}}`,
			`{components: [{name: w, type: worker, frontendSidecar: sidecar-frontend, podTemplate: {spec: {containers: [{name: main}, {name: sidecar-frontend, image: f, args: [a], env: [{name: A, value: b}]}]}}}]}`,
		},
		"shared GPU memory and failover": {
			`{services: {w: {componentType: worker, gpuMemoryService: {enabled: true, mode: interPod}, failover: {enabled: true, mode: interPod, numShadows: 1}}}}`,
			`{components: [{name: w, type: worker, experimental: {gpuMemoryService: {mode: InterPod}, failover: {mode: InterPod, numShadows: 1}}}]}`,
		},
		"a topology and a policy": {
			`{topologyConstraint: {topologyProfile: t, packDomain: zone}, experimental: {kvTransferPolicy: {labelKey: rack, domain: rack, enforcement: preferred, preferredWeight: 0.5}}, services: {w: {componentType: worker, topologyConstraint: {packDomain: rack}, minAvailable: 1}}}`,
			`{topologyConstraint: {clusterTopologyName: t, packDomain: zone}, experimental: {kvTransferPolicy: {labelKey: rack, domain: rack, enforcement: preferred, preferredWeight: 0.5}}, components: [{name: w, type: worker, topologyConstraint: {packDomain: rack}, minAvailable: 1}]}`,
		},
		"devices that a claim gives": {
			`{services: {w: {componentType: worker, resources: {claims: [{name: gpus}]}, extraPodSpec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]}}}}`,
			`{components: [{name: w, type: worker, podTemplate: {spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: two}], containers: [{name: main, resources: {claims: [{name: gpus}]}}]}}}]}`,
		},
		"an endpoint picker makes workers a class": {
			`{services: {e: {componentType: epp, eppConfig: {configMapRef: {name: c, key: k}}}, w: {componentType: worker}}}`,
			`{components: [{name: e, type: epp, eppConfig: {configMapRef: {name: c, key: k}}}, {name: w, type: worker}]}`,
		},
		"a scaling adapter and nodes": {
			`{backendFramework: vllm, services: {w: {componentType: worker, multinode: {nodeCount: 2}, scalingAdapter: {enabled: true}, modelRef: {name: m}}}}`,
			`{backendFramework: vllm, components: [{name: w, type: worker, multinode: {nodeCount: 2}, scalingAdapter: {}, modelRef: {name: m}}]}`,
		},
	}
	for rule, c := range cases {
		for _, contract := range []Contract{ContractSeed, ContractV1} {
			t.Run(rule+"/"+string(contract), func(t *testing.T) {
				d := Defaults{Discovery: DiscoveryKubernetes, Contract: ContractRules{Forced: contract}}
				beta := readBeta(t, c.beta)
				fromBeta, err := FromV1Beta1(beta, d)
				if err != nil {
					t.Fatal(err)
				}
				stored, _ := conversion.GraphToAlpha(beta)
				fromStored, err := FromGraphDeployment(stored, d)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(fromBeta, fromStored); diff != "" {
					t.Errorf("as stored it is another (-written +stored):\n%s", diff)
				}
				fromAlpha, err := FromGraphDeployment(readAlpha(t, c.alpha), d)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(composed(fromAlpha), composed(fromBeta)); diff != "" {
					t.Errorf("the versions differ (-v1alpha1 +v1beta1):\n%s", diff)
				}
			})
		}
	}
}

// TestV1AlphaIsCompletedAsV1Beta1Is under the contract of 1.x, whoever makes the pods:
// they are made from the graph on Grove, and elsewhere from components in the words of
// v1beta1. Under the seed's contract it is taken as it is.
func TestV1AlphaIsCompletedAsV1Beta1Is(t *testing.T) {
	for rule, c := range map[string]struct{ alpha, beta string }{
		"a mount without a volume is of the claim of its name": {
			`{extraPodSpec: {volumes: [{name: own, emptyDir: {}}], mainContainer: {volumeMounts: [{name: models, mountPath: /m}, {name: own, mountPath: /o}]}}, volumeMounts: [{name: data, mountPoint: /d}]}`,
			`{volumes: [{name: own, emptyDir: {}}], containers: [{name: main, volumeMounts: [{name: models, mountPath: /m}, {name: own, mountPath: /o}, {name: data, mountPath: /d}]}]}`,
		},
		"GPUs that are requested are a limit": {
			`{extraPodSpec: {mainContainer: {resources: {requests: {nvidia.com/gpu: 2, cpu: 1}}}}}`,
			`{containers: [{name: main, resources: {requests: {nvidia.com/gpu: 2, cpu: 1}}}]}`,
		},
		"a limit counts where both are given": {
			`{resources: {limits: {gpu: "4"}}, extraPodSpec: {mainContainer: {resources: {requests: {nvidia.com/gpu: 2}}}}}`,
			`{containers: [{name: main, resources: {requests: {nvidia.com/gpu: 2}, limits: {nvidia.com/gpu: 4}}}]}`,
		},
		"devices of a service too": {
			`{resources: {requests: {custom: {rdma/ib: "8"}}}}`,
			`{containers: [{name: main, resources: {requests: {rdma/ib: 8}}}]}`,
		},
	} {
		t.Run(rule, func(t *testing.T) {
			d := Defaults{Contract: ContractRules{Forced: ContractV1}}
			alpha := readAlpha(t, `{services: {w: `+c.alpha+`}}`)
			fromAlpha, err := FromGraphDeployment(alpha, d)
			if err != nil {
				t.Fatal(err)
			}
			fromBeta, err := FromV1Beta1(readBeta(t, `{components: [{name: w, podTemplate: {spec: `+c.beta+`}}]}`), d)
			if err != nil {
				t.Fatal(err)
			}
			got, want := fromAlpha.Components[0], fromBeta.Components[0]
			if diff := cmp.Diff(want.Mounts, got.Mounts); diff != "" {
				t.Errorf("mounts (-v1beta1 +v1alpha1):\n%s", diff)
			}
			if diff := cmp.Diff(want.MainContainer(), got.MainContainer()); diff != "" {
				t.Errorf("the main container (-v1beta1 +v1alpha1):\n%s", diff)
			}
			if got.Resources.GPUs != want.Resources.GPUs {
				t.Errorf("%d GPUs, want %d", got.Resources.GPUs, want.Resources.GPUs)
			}
			d.Contract.Forced = ContractSeed
			seed, err := FromGraphDeployment(alpha, d)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.MainContainer(), seed.Components[0].MainContainer()); len(got.Mounts) == len(seed.Components[0].Mounts) && diff == "" {
				t.Error("the seed's contract completes it as well")
			}
		})
	}
}

// composed is a graph whose components say everything in one place.
func composed(g *Graph) any {
	type one struct {
		Spec      v1beta1.Component
		Component Component
	}
	var all []one
	plain := *g
	for _, c := range g.Components {
		spec := c.V1Beta1()
		c.Main, c.Pod, c.Env, c.Mounts, c.Resources = nil, nil, nil, nil, Resources{GPUs: c.Resources.GPUs}
		c.Labels, c.Annotations = none(c.Labels), none(c.Annotations)
		all = append(all, one{spec, c})
	}
	plain.Components = nil
	return struct {
		Graph      Graph
		Components []one
	}{plain, all}
}

// TestWhatOnlyBetaCanSayTakesEffect: of a graph that the original stored, and of one of
// v1alpha1 that somebody edited in v1beta1. Neither carries our word for that version.
func TestWhatOnlyBetaCanSayTakesEffect(t *testing.T) {
	const spec = `{components: [{name: w, type: worker, frontendSidecar: side, podTemplate: {spec: {
		volumes: [{name: cfg, configMap: {name: cfg}}],
		containers: [
			{name: main, image: i, volumeMounts: [{name: cfg, mountPath: /etc/a.yaml, subPath: a.yaml, readOnly: true}]},
			{name: side, image: s}]}}}]}`
	left, _ := conversion.GraphToAlpha(readBeta(t, spec))
	delete(left.Annotations, v1alpha1.AnnotationWrittenAs)

	shown, _ := conversion.GraphToBeta(readAlpha(t, `{services: {w: {componentType: worker, extraPodSpec: {mainContainer: {image: i}}}}}`))
	shown.Spec = readBeta(t, spec).Spec
	edited, _ := conversion.GraphToAlpha(shown)
	if as := conversion.WrittenAs(edited); as != conversion.Alpha {
		t.Fatalf("edited in v1beta1, it is written as %s", as)
	}

	for rule, dgd := range map[string]*v1alpha1.DynamoGraphDeployment{"left by the original": left, "edited in v1beta1": edited} {
		t.Run(rule, func(t *testing.T) {
			g, err := FromGraphDeployment(dgd, Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			c := g.Components[0]
			if c.FrontendSidecar != "side" {
				t.Errorf("frontend sidecar %q", c.FrontendSidecar)
			}
			want := []corev1.VolumeMount{{Name: "cfg", MountPath: "/etc/a.yaml", SubPath: "a.yaml", ReadOnly: true}}
			if diff := cmp.Diff(want, c.Main.VolumeMounts); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
		})
	}

	dcd := &v1alpha1.DynamoComponentDeployment{}
	dcd.Spec.SharedSpec = *left.Spec.Services["w"]
	dcd.Annotations = map[string]string{v1alpha1.AnnotationComponentPayload: `{"version":1,"spec":{"name":"w","frontendSidecar":"side"}}`}
	g, err := FromComponentDeployment(dcd, Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Components[0].FrontendSidecar; got != "side" {
		t.Errorf("frontend sidecar %q of a component", got)
	}
}

// TestAPayloadThatSaysNothingMakesNoBeta: v1alpha1 carries the order of its components,
// and what is left of some that are gone.
func TestAPayloadThatSaysNothingMakesNoBeta(t *testing.T) {
	for rule, payload := range map[string]string{
		"order alone":              `{"version":1,"spec":{"components":[{"name":"w"},{"name":"a"}]}}`,
		"a component that is gone": `{"version":1,"spec":{"components":[{"name":"gone","frontendSidecar":"side"}]}}`,
		"an envelope of another":   `{"version":2,"spec":{"components":[{"name":"w","frontendSidecar":"side"}]}}`,
		"no JSON":                  `frontendSidecar`,
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := readAlpha(t, `{services: {w: {componentType: worker}, a: {componentType: frontend}}}`)
			dgd.Annotations = map[string]string{v1alpha1.AnnotationGraphPayload: payload}
			if conversion.MeansBeta(dgd) {
				t.Error("is read as v1beta1")
			}
		})
	}
}

// TestServicesAreInTheOrderThatWasWritten: cliques of Grove are, also of a graph that the
// original stored without anything else that only v1beta1 can say.
func TestServicesAreInTheOrderThatWasWritten(t *testing.T) {
	dgd := readAlpha(t, `{services: {a: {}, b: {}, c: {}}}`)
	dgd.Annotations = map[string]string{v1alpha1.AnnotationGraphPayload: `{"version":1,"spec":{"components":[{"name":"c"},{"name":"gone"},{"name":"a"}]}}`}
	g, err := FromGraphDeployment(dgd, Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range g.Components {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"c", "b", "a"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
