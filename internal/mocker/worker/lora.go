package worker

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// loraRoutes adds the LoRA API. Failures inside a handler are HTTP 200 with
// "status":"error", as in the runtime; only an endpoint that does not exist is
// an HTTP error.
func (w *Worker) loraRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/loras", w.loraCall("load_lora", w.loadAdapter))
	mux.HandleFunc("GET /v1/loras", w.loraCall("list_loras", w.listAdapters))
	// Names may hold slashes and are not escaped, hence the rest of the path.
	mux.HandleFunc("DELETE /v1/loras/{name...}", w.loraCall("unload_lora", w.unloadAdapter))
}

// adapterEndpoints exist on vLLM workers that decode.
func (c Config) adapterEndpoints() []string {
	if c.Backend != "vllm" || c.Role == Prefill {
		return nil
	}
	return []string{"load_lora", "unload_lora", "list_loras"}
}

// loraCall applies the failure knob and the rule of missing endpoints.
func (w *Worker) loraCall(endpoint string, handle func(*http.Request) map[string]any) http.HandlerFunc {
	return func(response http.ResponseWriter, r *http.Request) {
		if !w.serving.Load() || !slices.Contains(w.config.adapterEndpoints(), endpoint) {
			message := fmt.Sprintf("Endpoint '%s' not found in local registry", endpoint)
			wire.WriteJSON(response, http.StatusInternalServerError, failure(message))
			return
		}
		if endpoint != "list_loras" {
			switch w.knobs.AdapterFailure {
			case AdapterRefused:
				wire.WriteJSON(response, http.StatusInternalServerError, failure("refused by MOCKER_LORA_FAILURE"))
				return
			case AdapterHangs:
				// A server notices that its client left only once the body is read.
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				return
			case AdapterError:
				wire.WriteJSON(response, http.StatusOK, failure("download failed, as asked by MOCKER_LORA_FAILURE"))
				return
			}
		}
		wire.WriteJSON(response, http.StatusOK, handle(r))
	}
}

func (w *Worker) loadAdapter(r *http.Request) map[string]any {
	var body struct {
		Name   string `json:"lora_name"`
		Source struct {
			URI string `json:"uri"`
		} `json:"source"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure("invalid request: " + err.Error())
	}
	switch {
	case body.Name == "":
		return failure("'lora_name' is required in request")
	case body.Source.URI == "":
		return failure("'source.uri' is required in request")
	case !w.config.Adapters:
		return failure("LoRA is not enabled: start the engine with --enable-lora")
	}
	if err := checkSource(body.Source.URI); err != nil {
		return failure("Failed to download LoRA: " + err.Error())
	}
	if w.knobs.AdapterFailure == AdapterForgets {
		return success("LoRA adapter loaded", body.Name, AdapterID(body.Name))
	}
	adapter, known := w.adapters.Load(body.Name, body.Source.URI)
	if known {
		return success(fmt.Sprintf("LoRA adapter '%s' already loaded", body.Name), body.Name, adapter.ID)
	}
	w.publish()
	w.log.Info("adapter loaded", "name", body.Name, "id", adapter.ID, "source", body.Source.URI)
	return success(fmt.Sprintf("LoRA adapter '%s' loaded successfully", body.Name), body.Name, adapter.ID)
}

func (w *Worker) unloadAdapter(r *http.Request) map[string]any {
	name := strings.TrimPrefix(r.PathValue("name"), "/")
	adapter, ok := w.adapters.Unload(name)
	if !ok {
		known := slices.Sorted(maps.Keys(w.adapters.IDs()))
		return failure(fmt.Sprintf("LoRA adapter '%s' not found. Available LoRAs: %q", name, known))
	}
	w.publish()
	w.log.Info("adapter unloaded", "name", name, "id", adapter.ID)
	return success(fmt.Sprintf("LoRA adapter '%s' unloaded successfully", name), name, adapter.ID)
}

func (w *Worker) listAdapters(*http.Request) map[string]any {
	ids := w.adapters.IDs()
	return map[string]any{"status": "success", "loras": ids, "count": len(ids)}
}

// adapterModels are the cards of loaded adapters, so that the frontend lists them.
func (w *Worker) adapterModels(base discovery.Card) []discovery.Model {
	var out []discovery.Model
	for _, name := range slices.Sorted(maps.Keys(w.adapters.IDs())) {
		card := base
		card.DisplayName = name
		card.Slug = discovery.Slug(name)
		card.UserData = map[string]any{"lora_adapter": true, "lora_id": w.adapters.IDs()[name]}
		out = append(out, discovery.NewModel(w.config.Address, card, card.Slug))
	}
	return out
}

func success(message, name string, id int64) map[string]any {
	return map[string]any{"status": "success", "message": message, "lora_name": name, "lora_id": id}
}

func failure(message string) map[string]any {
	return map[string]any{"status": "error", "message": message}
}
