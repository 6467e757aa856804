package frontend

import (
	"slices"
	"sync"
	"time"
)

// shunTime is how long a worker that did not take a request gets no other one.
// It is longer than discovery needs to learn of a crash, and far shorter than a
// cluster takes to give up a lost node.
const shunTime = 5 * time.Second

// shunned are the workers that did not take a request although discovery has
// them: those of a lost node, for one. The request that found out has failed;
// the next ones go elsewhere.
type shunned struct {
	mu    sync.Mutex
	until map[uint64]time.Time
}

func (s *shunned) add(instance uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[uint64]time.Time{}
	}
	s.until[instance] = now.Add(shunTime)
}

// without leaves out who is shunned, unless nobody would be left.
func (s *shunned) without(targets []target, now time.Time) []target {
	s.mu.Lock()
	defer s.mu.Unlock()
	for instance, until := range s.until {
		if !now.Before(until) {
			delete(s.until, instance)
		}
	}
	left := slices.DeleteFunc(slices.Clone(targets), func(t target) bool {
		_, found := s.until[t.instance]
		return found
	})
	if len(left) == 0 {
		return targets
	}
	return left
}
