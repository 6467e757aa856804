package apply

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// writeLog remembers the last write of each object, so that a reconcile which
// still sees the cache of before that write does not send it again, and a
// payload which the server keeps under another spelling is sent only once. It
// is an economy, not a source of truth: losing it costs one request an object.
// Objects that went away are not told apart from others, so there is a limit.
type writeLog struct {
	mu      sync.Mutex
	entries map[identity]write
}

const mostWrites = 1 << 16

type write struct {
	payload       [sha256.Size]byte
	before, after string // resource versions
}

func (l *writeLog) record(id identity, payload *unstructured.Unstructured, before, after string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[identity]write{}
	}
	for other := range l.entries {
		if len(l.entries) < mostWrites {
			break
		}
		delete(l.entries, other)
	}
	l.entries[id] = write{fingerprint(payload), before, after}
}

// forget drops what was written to an object that is deleted: one made again is
// another.
func (l *writeLog) forget(id identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, id)
}

// covers reports whether payload was already written, as far as an object seen
// at version seen can tell.
func (l *writeLog) covers(id identity, payload *unstructured.Unstructured, seen string) bool {
	l.mu.Lock()
	last, ok := l.entries[id]
	l.mu.Unlock()
	return ok && (seen == last.before || seen == last.after) && last.payload == fingerprint(payload)
}

// awaits reports whether an object seen at a version is still the one of before
// the last write.
func (l *writeLog) awaits(id identity, seen string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.entries[id]
	return ok && seen == last.before && last.before != last.after
}

func fingerprint(payload *unstructured.Unstructured) [sha256.Size]byte {
	raw, err := json.Marshal(payload.Object) // map keys are sorted, so equal payloads give equal bytes
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(raw)
}
