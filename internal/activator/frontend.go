package activator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	modelsPath = "/v1/models"
	// complete is how long after the first model of a graph the last is there: adapters
	// are loaded when their base model is.
	complete = time.Minute
)

// frontend is the one behind an activator.
type frontend struct {
	url    *url.URL
	client *http.Client

	mu     sync.Mutex
	models []string // as last listed
	asked  time.Time
	up     time.Time // since when there are any; zero while there are none

	readyMu sync.Mutex
	answers map[string]readiness
	// noted is told of what is listed, and whether that is all there will be.
	noted func(models []string, all bool)
}

// readiness is what a frontend said of a model, and when.
type readiness struct {
	ready bool
	asked time.Time
}

// serves reports whether a model is listed, by what was known at most so long ago. Who asks
// while another does waits for its answer.
func (f *frontend) serves(ctx context.Context, model string, age time.Duration) bool {
	begin := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked.Before(begin) && (age <= 0 || time.Since(f.asked) > age) {
		f.models, f.asked = f.list(ctx), time.Now()
		switch {
		case len(f.models) == 0:
			f.up = time.Time{}
		case f.up.IsZero():
			f.up = f.asked
		}
		if len(f.models) > 0 && f.noted != nil {
			f.noted(f.models, f.asked.Sub(f.up) > complete)
		}
	}
	return slices.Contains(f.models, model)
}

// awake reports whether any model is listed.
func (f *frontend) awake(ctx context.Context) bool {
	f.serves(ctx, "", fresh)
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.models) > 0
}

// lacks reports whether other models have been listed for so long, and this one is not.
func (f *frontend) lacks(model string, since time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.up.IsZero() && time.Since(f.up) > since && !slices.Contains(f.models, model)
}

// list asks which models there are; a frontend that does not answer has none.
func (f *frontend) list(ctx context.Context) []string {
	// What one who asks finds out counts for others: it may not end with them.
	response, err := f.get(context.WithoutCancel(ctx), modelsPath)
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	var listed struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, 4<<20)).Decode(&listed) != nil {
		return nil
	}
	var models []string
	for _, m := range listed.Data {
		models = append(models, m.ID)
	}
	return models
}

// ready reports whether all that a model needs is there. A frontend that does not tell is
// believed its list.
func (f *frontend) ready(ctx context.Context, model string) bool {
	begin := time.Now()
	if !f.serves(ctx, model, pollPeriod/2) {
		return false
	}
	f.readyMu.Lock()
	defer f.readyMu.Unlock()
	if last := f.answers[model]; last.asked.After(begin) || time.Since(last.asked) < pollPeriod/2 {
		return last.ready
	}
	response, err := f.get(context.WithoutCancel(ctx), modelsPath+"/"+model+"/ready")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	if f.answers == nil {
		f.answers = map[string]readiness{}
	}
	f.answers[model] = readiness{response.StatusCode != http.StatusServiceUnavailable, time.Now()}
	return f.answers[model].ready
}

func (f *frontend) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask the frontend for %s: %w", path, err)
	}
	return f.client.Do(request)
}

// listModels shows the models of a graph that sleeps, too.
func (a *Activator) listModels(w http.ResponseWriter, r *http.Request) {
	if a.frontend.awake(r.Context()) {
		a.pass(w, r)
		return
	}
	a.signal.look(r.Context())
	known := a.signal.listed()
	if len(known) == 0 {
		a.pass(w, r)
		return
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	listed := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, id := range known {
		listed.Data = append(listed.Data, model{ID: id, Object: "model", OwnedBy: "nvidia"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(listed)
}
