package frontend

import "strings"

// stopper cuts an answer at the first stop string. Text that may be the
// beginning of one is held back until that is known.
type stopper struct {
	stops []string
	held  string
}

// pass takes new text and returns what may be shown, and whether the end was
// reached.
func (s *stopper) pass(text string) (string, bool) {
	s.held += text
	end := -1
	for _, stop := range s.stops {
		if stop == "" {
			continue
		}
		if at := strings.Index(s.held, stop); at >= 0 && (end < 0 || at < end) {
			end = at
		}
	}
	if end >= 0 {
		shown := s.held[:end]
		s.held = ""
		return shown, true
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > keep; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				keep = n
			}
		}
	}
	shown := s.held[:len(s.held)-keep]
	s.held = s.held[len(s.held)-keep:]
	return shown, false
}

// rest is what was held back when the answer ended without a stop string.
func (s *stopper) rest() string {
	out := s.held
	s.held = ""
	return out
}
