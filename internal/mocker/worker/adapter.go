package worker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"lukechampine.com/blake3"
)

// Adapters are the LoRA adapters a worker has loaded.
type Adapters struct {
	mu     sync.Mutex
	loaded map[string]Adapter
}

// Adapter is one of them.
type Adapter struct {
	ID     int64
	Source string
}

// AdapterID is the number an engine knows an adapter by: 31 bits of the
// name's hash, never 0.
func AdapterID(name string) int64 {
	sum := blake3.Sum256([]byte(name))
	id := int64(binary.BigEndian.Uint64(sum[:8]) & 0x7FFFFFFF)
	return max(1, id)
}

// Load notes an adapter; it says whether it was there already.
func (a *Adapters) Load(name, source string) (Adapter, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.loaded[name]; ok {
		return known, true
	}
	if a.loaded == nil {
		a.loaded = map[string]Adapter{}
	}
	adapter := Adapter{ID: AdapterID(name), Source: source}
	a.loaded[name] = adapter
	return adapter, false
}

// Unload forgets an adapter; it says whether it was there.
func (a *Adapters) Unload(name string) (Adapter, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	adapter, ok := a.loaded[name]
	delete(a.loaded, name)
	return adapter, ok
}

// IDs lists what is loaded.
func (a *Adapters) IDs() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int64{}
	for name, adapter := range a.loaded {
		out[name] = adapter.ID
	}
	return out
}

// checkSource refuses addresses no runtime would download from.
func checkSource(uri string) error {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || rest == "" {
		return fmt.Errorf("source uri %q is not an address", uri)
	}
	if !slices.Contains([]string{"s3", "gs", "hf", "file", "http", "https"}, scheme) {
		return fmt.Errorf("source uri %q: unsupported scheme %s", uri, scheme)
	}
	return nil
}
