package model

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// engine serves the LoRA API of one pod.
type engine struct {
	server *httptest.Server

	mu     sync.Mutex
	loaded map[string]string // source by name
	calls  []call
	// failing answers loads with an error, and code 200 as engines do.
	failing bool
	// gate holds answers back until it is closed, or those to one method; nil lets
	// them pass.
	gate  chan struct{}
	gated string
	delay time.Duration
}

// call is a request that was answered.
type call struct {
	method, name string
	fine         bool
	at           time.Time
}

func newEngine() *engine {
	e := &engine{loaded: map[string]string{}}
	e.server = httptest.NewServer(e)
	return e
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Name   string `json:"lora_name"`
		Source struct {
			URI string `json:"uri"`
		} `json:"source"`
	}
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&body) // what cannot be read has no name
	} else {
		body.Name = strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1/loras"), "/")
	}
	e.mu.Lock()
	gate, gated, delay := e.gate, e.gated, e.delay
	e.mu.Unlock()
	if gate != nil && (gated == "" || gated == r.Method) {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	if delay > 0 && r.Method != http.MethodGet {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	_ = json.NewEncoder(w).Encode(e.answer(r.Method, body.Name, body.Source.URI)) // the caller may be gone
}

func (e *engine) answer(method, name, uri string) map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	fine, answer := true, map[string]any{"status": "success"}
	_, known := e.loaded[name]
	switch {
	case method == http.MethodGet:
		answer["loras"] = maps.Clone(e.loaded)
	case e.failing || method == http.MethodDelete && !known:
		fine, answer = false, map[string]any{"status": "error", "message": "it is not my day"}
	case method == http.MethodDelete:
		delete(e.loaded, name)
	case known:
		answer["message"] = "already loaded" // from wherever it was
	default:
		e.loaded[name] = uri
	}
	e.calls = append(e.calls, call{method, name, fine, time.Now()})
	return answer
}

func (e *engine) set(change func(*engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// holds are the adapters of an engine as name=source, sorted.
func (e *engine) holds() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := []string{}
	for name, uri := range e.loaded {
		held = append(held, name+"="+uri)
	}
	slices.Sort(held)
	return held
}

// answered are the calls so far, or those of one method that succeeded.
func (e *engine) answered(method string) []call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.calls), func(c call) bool {
		return method != "" && (c.method != method || !c.fine)
	})
}

// fabric is the network between operator and pods: a forward proxy that knows
// where an address really is. An address of nobody is remembered.
type fabric struct {
	server *httptest.Server

	mu      sync.Mutex
	engines map[string]*engine // by host:port
	strays  []string
}

func newFabric() *fabric {
	f := &fabric{engines: map[string]*engine{}}
	f.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			target := f.find(r.In.URL.Host)
			r.SetURL(target)
			r.Out.URL.Path = r.In.URL.Path
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	return f
}

func (f *fabric) url() string { return f.server.URL }

func (f *fabric) add(address string, e *engine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.engines[address+":9090"] = e
}

func (f *fabric) find(host string) *url.URL {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, found := f.engines[host]
	if !found {
		f.strays = append(f.strays, host)
		return &url.URL{Scheme: "http", Host: "nobody.invalid"}
	}
	target, err := url.Parse(e.server.URL)
	if err != nil {
		panic(err)
	}
	return target
}

// strayed tells whether an address was called that no engine has.
func (f *fabric) strayed(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.strays, address+":9090")
}
