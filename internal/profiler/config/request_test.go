package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestARequestOfBeta(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want func(*Config)
	}{
		"the model alone": {`{"model": "m"}`, func(*Config) {}},
		"hardware bounds, and is not used up": {
			`{"model": "m", "hardware": {"gpuSku": "h200_sxm", "totalGpus": 4, "numGpusPerNode": 8, "vramMb": 143771, "rdma": false}}`,
			func(c *Config) {
				c.Hardware = Hardware{GPU: "h200_sxm", Most: 4, GPUsPerNode: 8, MaxGPUsPerEngine: 4}
			},
		},
		"unless there is a rate to serve": {
			`{"model": "m", "hardware": {"totalGpus": 4}, "workload": {"requestRate": 2}}`,
			func(c *Config) {
				c.Hardware, c.SLA.RequestRate = Hardware{Most: 4, Budget: 4}, 2
			},
		},
		"requests at a time come at the rate at which they are answered in time": {
			`{"model": "m", "workload": {"concurrency": 10, "osl": 101, "isl": 5}, "sla": {"ttft": 1000, "itl": 10}}`,
			func(c *Config) { c.SLA = SLA{ISL: 5, OSL: 101, TTFT: 1000, ITL: 10, RequestRate: 5} },
		},
		"a time for the whole request": {
			`{"model": "m", "workload": {"osl": 101}, "sla": {"e2eLatency": 10000}}`,
			func(c *Config) { c.SLA.OSL, c.SLA.TTFT, c.SLA.ITL = 101, 2000, 80 },
		},
		"what to be good at": {
			`{"model": "m", "sla": {"optimizationType": "latency"}}`,
			func(c *Config) { c.SLA.TTFT, c.SLA.ITL = 500, 15 },
		},
		"measured, from a claim": {
			`{"model": "m", "backend": "sglang", "searchStrategy": "thorough", "modelCache": {"pvcName": "c", "pvcModelPath": "p"}}`,
			func(c *Config) {
				c.Engine.Backend, c.Sweep.Offline = SGLang, false
				c.Deployment.Cache = ModelCache{PVCName: "c", PVCPath: "p", MountPath: "/opt/model-cache"}
			},
		},
		"mock engines, and a planner that has its own words": {
			`{"model": "m", "image": "i", "features": {"mocker": {"enabled": true}, "planner": {"mode": "disagg", "nested": {"x": 1}}}}`,
			func(c *Config) {
				c.Sweep.Modes = []Mode{Disaggregated}
				c.Request = &Request{Image: "i", Mocker: true, Planner: map[string]any{"mode": "disagg", "nested": map[string]any{"x": 1.0}}}
			},
		},
		"a planner that is switched off": {
			`{"model": "m", "features": {"planner": {"enabled": false}}}`, func(*Config) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := Parse(`{deployment: {model: m}, engine: {backend: auto}, sweep: {useAiConfigurator: true}, sla: {isl: 4000, osl: 1000, ttft: 2000, itl: 30}}`)
			if err != nil {
				t.Fatal(err)
			}
			want.Request = &Request{}
			test.want(want)
			got, err := Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Parse(`{"model": "m", "nobody": 1}`); !IsInvalid(err) {
		t.Errorf("a field that nobody knows: %v", err)
	}
}
