package prerequisite

import (
	"encoding/json"
	"slices"
	"strings"
)

// routerPools are the namespaces of the runtime that routers of the manifest serve.
type routerPools struct{ Prefill, Decode []string }

// router notes a container that routes to the workers of one namespace.
func (n *Needs) router(container map[string]any) {
	line := words(container)
	at := slices.Index(line, "--endpoint")
	if !slices.Contains(line, "dynamo.router") || at < 0 || at+1 == len(line) {
		return
	}
	endpoint := strings.Split(line[at+1], ".")
	if len(endpoint) != 3 { // namespace.component.endpoint
		return
	}
	if endpoint[1] == "prefill" {
		n.pools.Prefill = append(n.pools.Prefill, endpoint[0])
	} else {
		n.pools.Decode = append(n.pools.Decode, endpoint[0])
	}
}

// configuration is a global router's that sends every request to the first pool
// of its kind; without pools it is empty.
func (p routerPools) configuration() string {
	if len(p.Prefill)+len(p.Decode) == 0 {
		return "{}"
	}
	first := [][]int{{0}}
	text, _ := json.Marshal(map[string]any{ // of strings and numbers
		"num_prefill_pools":               len(p.Prefill),
		"num_decode_pools":                len(p.Decode),
		"prefill_pool_dynamo_namespaces":  p.Prefill,
		"decode_pool_dynamo_namespaces":   p.Decode,
		"prefill_pool_selection_strategy": map[string]any{"ttft_min": 0, "ttft_max": 1000, "ttft_resolution": 1, "isl_min": 0, "isl_max": 32000, "isl_resolution": 1, "prefill_pool_mapping": first},
		"decode_pool_selection_strategy":  map[string]any{"itl_min": 0, "itl_max": 100, "itl_resolution": 1, "context_length_min": 0, "context_length_max": 32000, "context_length_resolution": 1, "decode_pool_mapping": first},
	})
	return string(text)
}
