// Package rollout decides the next step of a change that takes several reconciles.
// It is pure: what is asked for and what was seen go in, the next step comes
// out. Asked again with the same world it gives the same step, so nothing is
// lost when the operator is restarted half-way.
package rollout

import (
	"fmt"
	"maps"
	"slices"
)

// Phase is how far a restart is.
//
//	Pending ──> Restarting ──> Completed
//	                └────────> Failed ──> Restarting    when the service comes up after all
//
// A new id starts over from any of them.
type Phase string

const (
	// Pending was asked for; no service has been told yet.
	Pending Phase = "Pending"
	// Restarting has services under way.
	Restarting Phase = "Restarting"
	// Completed means that every service runs with the restart's mark.
	Completed Phase = "Completed"
	// Failed means that a service did not come up again, and those after it in
	// order were left alone.
	Failed Phase = "Failed"
	// Superseded is how the original ends a restart that another change overtook; nothing
	// is left to be done.
	Superseded Phase = "Superseded"
)

// Restart is what a user asks for. Each new ID asks once.
type Restart struct {
	ID       string
	Parallel bool
	// Order is that of a sequential restart; every service is in it.
	Order []string
}

// Record is what is remembered of a restart from pass to pass.
type Record struct {
	ID         string
	Phase      Phase
	InProgress []string
	Message    string
}

// Service is what was seen of one service.
type Service struct {
	Name string
	// Made is true once its workload exists.
	Made bool
	// Mark is the id of the last restart that its workload carries.
	Mark string
	// Done is true when the workload runs in full, as it is asked for now.
	Done bool
	// Failure says why the workload will not come up; empty while it may.
	Failure string
	// With are the services that are restarted together, this one among them; none for
	// one that is restarted by itself.
	With []string
}

// together are the services whose turn it is when it is that of one.
func (s Service) together() []string {
	if len(s.With) > 0 {
		return s.With
	}
	return []string{s.Name}
}

// Step is the next step: the mark that each service has to carry, and what to
// remember.
type Step struct {
	Marks  map[string]string
	Record *Record
}

// Next computes the step. Services that are not to be restarted now keep the
// mark they carry: taking it away would replace their pods. While the
// orchestrator is busy with an earlier change nobody gets a new mark. A service
// that is made while a restart is asked for is born with its mark: it starts
// once. A restart that failed goes on when the service comes up after all.
func Next(asked *Restart, last *Record, services []Service, busy bool) Step {
	carried, made := map[string]string{}, false
	for _, s := range services {
		made = made || s.Made
		if s.Mark != "" {
			carried[s.Name] = s.Mark
		}
	}
	if asked == nil {
		return Step{carried, finished(last)}
	}
	if last != nil && last.ID == asked.ID && (last.Phase == Completed || last.Phase == Superseded) {
		return Step{carried, last}
	}
	for _, s := range services {
		if !s.Made {
			carried[s.Name] = asked.ID
		}
	}
	marks := maps.Clone(carried)
	var record *Record
	switch {
	case last == nil && !made: // what is there at creation is not carried out
		record = &Record{ID: asked.ID, Phase: Completed}
	case asked.Parallel:
		record = parallel(*asked, services, marks)
	default:
		record = sequential(*asked, services, marks)
	}
	if busy {
		marks = carried
	}
	return Step{marks, record}
}

// finished keeps the memory of a restart that has ended, and only that.
func finished(r *Record) *Record {
	if r != nil && (r.Phase == Completed || r.Phase == Failed || r.Phase == Superseded) {
		return r
	}
	return nil
}

// parallel marks every service at once.
func parallel(asked Restart, services []Service, marks map[string]string) *Record {
	record := &Record{ID: asked.ID, Phase: phase(asked.ID, services)}
	for _, s := range services {
		marks[s.Name] = asked.ID
		if s.Made && (s.Mark != asked.ID || !s.Done) {
			record.InProgress = append(record.InProgress, s.Name)
		}
		if s.Mark == asked.ID && s.Failure != "" {
			record.Phase, record.Message = Failed, failure(s)
		}
	}
	if len(record.InProgress) == 0 {
		record.Phase = Completed
	}
	return record
}

// sequential marks services up to the first that is not through. Those that are
// restarted together have the turn of the first of them.
func sequential(asked Restart, services []Service, marks map[string]string) *Record {
	for _, name := range asked.Order {
		at := slices.IndexFunc(services, func(s Service) bool { return s.Name == name })
		if at < 0 {
			continue
		}
		s := services[at]
		for _, with := range s.together() {
			marks[with] = asked.ID
		}
		switch {
		case !s.Made || (s.Mark == asked.ID && s.Done):
			continue
		case s.Mark == asked.ID && s.Failure != "":
			return &Record{ID: asked.ID, Phase: Failed, InProgress: s.together(), Message: failure(s)}
		default:
			return &Record{ID: asked.ID, Phase: phase(asked.ID, services), InProgress: s.together()}
		}
	}
	return &Record{ID: asked.ID, Phase: Completed}
}

// phase of a restart that has not ended: it has begun once a service carries
// its mark.
func phase(id string, services []Service) Phase {
	if slices.ContainsFunc(services, func(s Service) bool { return s.Mark == id }) {
		return Restarting
	}
	return Pending
}

func failure(s Service) string {
	return fmt.Sprintf("%s did not come up again: %s", s.Name, s.Failure)
}
