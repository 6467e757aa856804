package worker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// Health is the state of a worker's endpoints and what it means for probes.
//
// With DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS every endpoint it lists must be
// ready. Without it, endpoints that are probed by canary must be; where there
// are none, the starting status stands.
type Health struct {
	started  time.Time
	listed   []string
	starting bool

	mu        sync.Mutex
	endpoints map[string]bool
	canaries  map[string]bool
}

// NewHealth reads the rule from the environment.
func NewHealth(env podenv.Env, now time.Time) (*Health, error) {
	h := &Health{
		started: now, endpoints: map[string]bool{}, canaries: map[string]bool{},
		starting: env["DYN_SYSTEM_STARTING_HEALTH_STATUS"] == "ready",
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

// Ready applies the rule.
func (h *Health) Ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listed) > 0 {
		for _, name := range h.listed {
			if !h.endpoints[name] {
				return false
			}
		}
		return true
	}
	if len(h.canaries) > 0 {
		for name := range h.canaries {
			if !h.endpoints[name] {
				return false
			}
		}
		return true
	}
	return h.starting
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
