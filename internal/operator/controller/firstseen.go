package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// FirstSeen remembers when this process first saw something happen to an object,
// by its own clock: one that differs from the API server's then shortens no
// deadline. A process that takes over begins anew.
type FirstSeen struct {
	mu    sync.Mutex
	times map[types.UID]time.Time
}

// firstSeenTTL is when an object that nobody asked about again is dropped: it went
// away without us.
const firstSeenTTL = 24 * time.Hour

// Time is when the object was first asked about.
func (f *FirstSeen) Time(uid types.UID, now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, found := f.times[uid]; found {
		return first
	}
	if f.times == nil {
		f.times = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(f.times, func(_ types.UID, first time.Time) bool { return now.Sub(first) > firstSeenTTL })
	f.times[uid] = now
	return now
}

// Forget drops an object that is done with.
func (f *FirstSeen) Forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.times, uid)
}
