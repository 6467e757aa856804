package worker

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// Health is the state of a worker's endpoints and what it means for probes.
//
// With DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS every endpoint it lists must be
// ready. Without it, endpoints that are probed by canary must be; where there
// are none, the starting status stands; in 1.x only until the worker has
// endpoints, whose state it is then. An engine that stands by for another is
// well as it is.
type Health struct {
	started      time.Time
	listed       []string
	starting     bool
	generational bool

	mu        sync.Mutex
	endpoints map[string]bool
	canaries  map[string]bool
	standby   bool
}

// NewHealth reads the rule from the environment.
func NewHealth(env podenv.Env, now time.Time) (*Health, error) {
	h := &Health{
		started: now, endpoints: map[string]bool{}, canaries: map[string]bool{},
		starting: env["DYN_SYSTEM_STARTING_HEALTH_STATUS"] == "ready", generational: env.Generational(),
	}
	if text := strings.TrimSpace(env["DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS"]); text != "" {
		if err := json.Unmarshal([]byte(text), &h.listed); err != nil {
			return nil, fmt.Errorf("environment DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS=%q is not a JSON list: %w", text, err)
		}
	}
	return h, nil
}

// Set notes whether an endpoint takes requests.
func (h *Health) Set(endpoint string, ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endpoints[endpoint] = ready
}

// Probe declares that an endpoint is watched by canary requests.
func (h *Health) Probe(endpoint string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.canaries[endpoint] = true
}

// Standby notes whether the engine waits for another to fail.
func (h *Health) Standby(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.standby = on
}

// Ready applies the rule.
func (h *Health) Ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	var decide []string
	switch {
	case h.standby:
		return true
	case len(h.listed) > 0:
		decide = h.listed
	case len(h.canaries) > 0:
		decide = slices.Collect(maps.Keys(h.canaries))
	case h.generational && len(h.endpoints) > 0:
		decide = slices.Collect(maps.Keys(h.endpoints))
	default:
		return h.starting
	}
	return !slices.ContainsFunc(decide, func(name string) bool { return !h.endpoints[name] })
}

// answer writes the body of /health and /live: JSON, though sent as plain text.
func (h *Health) answer(w http.ResponseWriter, ready bool) {
	words := map[bool]string{true: "ready", false: "notready"}
	h.mu.Lock()
	endpoints := map[string]string{}
	for name, ok := range h.endpoints {
		endpoints[name] = words[ok]
	}
	h.mu.Unlock()
	up := time.Since(h.started)
	body, err := json.Marshal(map[string]any{
		"status":    words[ready],
		"uptime":    map[string]any{"secs": int64(up / time.Second), "nanos": int64(up % time.Second)},
		"endpoints": endpoints,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(body)
}
