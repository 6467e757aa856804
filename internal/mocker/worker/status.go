package worker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// statusRoutes are those of the system status server, which is up before the engine.
func (w *Worker) statusRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+w.env.String("/health", "DYN_SYSTEM_HEALTH_PATH"), func(response http.ResponseWriter, _ *http.Request) {
		w.health.answer(response, w.health.Ready() && !w.flapped(time.Now()))
	})
	mux.HandleFunc("GET "+w.env.String("/live", "DYN_SYSTEM_LIVE_PATH"), func(response http.ResponseWriter, _ *http.Request) {
		w.health.answer(response, w.health.Ready())
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(w.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /metadata", w.metadata)
	mux.HandleFunc("/engine/{path...}", w.engineCall)
	if strings.EqualFold(w.env["DYN_LORA_ENABLED"], "true") {
		w.loraRoutes(mux)
	}
	mux.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) {
		http.Error(response, "Route not found", http.StatusNotFound)
	})
	return mux
}

// flapped says whether the readiness knob wants "not ready" at this moment.
func (w *Worker) flapped(now time.Time) bool {
	period := w.knobs.ReadinessFlap
	return period > 0 && now.Sub(w.health.started)/period%2 == 1
}

// metadata shows what is published, where discovery is Kubernetes'.
func (w *Worker) metadata(response http.ResponseWriter, _ *http.Request) {
	if w.env["DYN_DISCOVERY_BACKEND"] != "kubernetes" {
		http.Error(response, "Discovery metadata not available", http.StatusNotFound)
		return
	}
	wire.WriteJSON(response, http.StatusOK, w.offered())
}

// engineCalls per backend: what the engine does when asked.
var engineCalls = map[string]map[string]func(*Worker) string{
	"vllm": {
		"sleep":   func(w *Worker) string { w.sleep(true); return "Engine slept" },
		"wake_up": func(w *Worker) string { w.sleep(false); return "Engine woke" },
	},
	"sglang": {
		"start_profile": func(*Worker) string { return "Profiling started" },
		"stop_profile":  func(*Worker) string { return "Profiling stopped" },
	},
}

func (w *Worker) engineCall(response http.ResponseWriter, r *http.Request) {
	problem := func(status int, kind, message string) {
		wire.WriteJSON(response, status, map[string]any{"error": kind, "message": message})
	}
	path := r.PathValue("path")
	call, ok := engineCalls[w.config.Backend][path]
	if !ok {
		problem(http.StatusNotFound, "Route not found", fmt.Sprintf("Route /engine/%s not found", path))
		return
	}
	if r.ContentLength > 0 {
		var body any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			problem(http.StatusBadRequest, "Invalid JSON", err.Error())
			return
		}
	}
	if !w.serving.Load() {
		problem(http.StatusInternalServerError, "Engine not ready", "the engine is still loading")
		return
	}
	wire.WriteJSON(response, http.StatusOK, map[string]any{"status": "ok", "message": call(w)})
}

// sleep stops the engine and takes it out of discovery, or the reverse. Health
// is left alone: a sleeping engine is not a sick one.
func (w *Worker) sleep(on bool) {
	w.asleep.Store(on)
	if on {
		w.engine.Sleep()
	} else {
		w.engine.Wake()
	}
	w.publish()
}
