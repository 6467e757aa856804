// Package inplace foretells how a workload replaces its own pods: how many are
// started and stopped at a time, and how few are left to serve meanwhile. It knows
// one service at a time, as a workload does; what several of them come to together
// is not its business.
package inplace

// Strategy is how pods are replaced.
type Strategy struct {
	// Surge is how many pods more than desired may be started, Unavailable how many
	// fewer may serve.
	Surge, Unavailable int
	// Recreate stops all pods before the first new one starts.
	Recreate bool
	// Exchange starts a pod when the one whose name it takes is gone; otherwise pods
	// start while others still shut down.
	Exchange bool
}

// Progress is how far a replacement is.
type Progress struct {
	Old, OldAvailable int
	New, NewAvailable int
}

// Available are the pods that serve.
func (p Progress) Available() int { return p.OldAvailable + p.NewAvailable }

// Next is what a Deployment's controller makes of it: new pods as long as all of them
// are no more than desired and surge, then fewer old ones as long as enough serve.
// Those that do not serve go first.
func (s Strategy) Next(desired int, p Progress) Progress {
	if s.Recreate {
		return Progress{}.started(desired, p)
	}
	if more := desired + s.Surge - p.Old - p.New; more > 0 {
		p.New = min(desired, p.New+more)
	}
	least := desired - s.Unavailable
	spare := p.Old + p.New - least - (p.New - p.NewAvailable)
	if stop := min(p.Old, spare); stop > 0 {
		idle := p.Old - p.OldAvailable
		p.Old -= stop
		p.OldAvailable -= max(0, stop-idle)
	}
	if p.New > desired {
		p.New, p.NewAvailable = desired, min(p.NewAvailable, desired)
	}
	return p
}

// started is a recreation: nothing new until nothing old is left.
func (Progress) started(desired int, p Progress) Progress {
	if p.Old > 0 {
		p.Old, p.OldAvailable = 0, 0
		return p
	}
	p.New = desired
	return p
}

// Wave is what happens until everything that was started serves.
type Wave struct {
	// Start and Stop are pods that are told to.
	Start, Stop int
	// StartOld are pods from before the change that are started all the same, because
	// the workload is scaled first.
	StartOld int
	// Old and New are those that there are at its end, starting ones among them.
	Old, New int
	// Lowest is how many serve before the first that is starting does.
	Lowest int
	// HeldOld and HeldNew are pods that hold their GPUs at the same time; Leaving are
	// those that may still shut down beside them.
	HeldOld, HeldNew, Leaving int
}

// Roll replaces all pods of a workload, wave by wave. A workload that is to have
// another number of pods as well is brought to that first, with its old pods.
func (s Strategy) Roll(live, desired int) []Wave {
	p := Progress{Old: live, OldAvailable: live}
	if s.Recreate && live > 0 && desired > 0 {
		return []Wave{{Start: desired, Stop: live, New: desired, HeldNew: desired, HeldOld: 0}}
	}
	if live != desired {
		p.Old, p.OldAvailable = desired, min(live, desired)
	}
	var waves []Wave
	for p.Old > 0 || p.NewAvailable < desired {
		wave, next := s.wave(desired, p)
		if live > desired && len(waves) == 0 {
			wave.Stop += live - desired
			if !s.Exchange {
				wave.Leaving += live - desired
			}
		}
		if live < desired && len(waves) == 0 {
			wave.StartOld = desired - live
		}
		waves = append(waves, wave)
		if wave.Start == 0 && wave.Stop == 0 && next == p {
			return waves // a strategy that may neither start nor stop one goes nowhere
		}
		p = next
	}
	return waves
}

// wave lets the controller do what it may at once, then everything come up.
func (s Strategy) wave(desired int, p Progress) (Wave, Progress) {
	before := p
	w := Wave{HeldOld: p.Old, HeldNew: p.New}
	for {
		next := s.Next(desired, p)
		if next == p {
			break
		}
		p = next
		w.HeldOld, w.HeldNew = p.Old, p.New
	}
	w.Start, w.Stop = p.New-before.New, before.Old-p.Old
	w.Old, w.New, w.Lowest = p.Old, p.New, p.Available()
	if !s.Exchange {
		w.Leaving = w.Stop
	}
	p.OldAvailable, p.NewAvailable = p.Old, p.New
	return w, p
}
