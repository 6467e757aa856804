package rollout

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNext(t *testing.T) {
	sequential := &Restart{ID: "2", Order: []string{"a", "b"}}
	parallel := &Restart{ID: "2", Parallel: true}
	cases := map[string]struct {
		asked    *Restart
		last     *Record
		services []Service
		busy     bool
		marks    map[string]string
		record   *Record
	}{
		"nothing asked for, nothing done": {
			services: []Service{{Name: "a", Made: true, Done: true}},
			marks:    map[string]string{},
		},
		"a restart that is no longer asked for is remembered if it ended": {
			last:     &Record{ID: "1", Phase: Completed},
			services: []Service{{Name: "a", Made: true, Mark: "1", Done: true}},
			marks:    map[string]string{"a": "1"},
			record:   &Record{ID: "1", Phase: Completed},
		},
		"a restart that is no longer asked for is forgotten if it did not": {
			last:     &Record{ID: "1", Phase: Restarting, InProgress: []string{"a"}},
			services: []Service{{Name: "a", Made: true, Mark: "1"}},
			marks:    map[string]string{"a": "1"},
		},
		"one that another change overtook is not carried out": {
			asked: sequential, last: &Record{ID: "2", Phase: Superseded},
			services: []Service{{Name: "a", Made: true, Done: true}, {Name: "b", Made: true, Done: true}},
			marks:    map[string]string{},
			record:   &Record{ID: "2", Phase: Superseded},
		},
		"a sequential restart begins with the first in order": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Done: true}, {Name: "b", Made: true, Done: true}},
			marks:  map[string]string{"a": "2"},
			record: &Record{ID: "2", Phase: Pending, InProgress: []string{"a"}},
		},
		"the next waits until the one before is through": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "2"}, {Name: "b", Made: true, Mark: "1", Done: true}},
			marks:  map[string]string{"a": "2", "b": "1"},
			record: &Record{ID: "2", Phase: Restarting, InProgress: []string{"a"}},
		},
		"then it is the next one's turn": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "2", Done: true}, {Name: "b", Made: true, Done: true}},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Restarting, InProgress: []string{"b"}},
		},
		"it is completed when the last is through": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "2", Done: true}, {Name: "b", Made: true, Mark: "2", Done: true}},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Completed},
		},
		"services that are restarted together have the turn of the first of them": {
			asked: &Restart{ID: "2", Order: []string{"b", "a", "c"}},
			services: []Service{
				{Name: "a", Made: true, Done: true, With: []string{"a", "b"}}, {Name: "b", Made: true, Done: true, With: []string{"a", "b"}},
				{Name: "c", Made: true, Done: true},
			},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Pending, InProgress: []string{"a", "b"}},
		},
		"the next waits for all that are restarted together": {
			asked: &Restart{ID: "2", Order: []string{"b", "c", "a"}},
			services: []Service{
				{Name: "a", Made: true, Mark: "2", Done: true, With: []string{"a", "b"}}, {Name: "b", Made: true, Mark: "2", With: []string{"a", "b"}},
				{Name: "c", Made: true, Done: true},
			},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Restarting, InProgress: []string{"a", "b"}},
		},
		"of those that are restarted together one that fails stops those after them": {
			asked: &Restart{ID: "2", Order: []string{"a", "c", "b"}},
			services: []Service{
				{Name: "a", Made: true, Mark: "2", Failure: "crash", With: []string{"a", "b"}}, {Name: "b", Made: true, Mark: "2", With: []string{"a", "b"}},
				{Name: "c", Made: true, Done: true},
			},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Failed, InProgress: []string{"a", "b"}, Message: "a did not come up again: crash"},
		},
		"a service that does not come up stops those after it": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "2", Failure: "crash"}, {Name: "b", Made: true, Done: true}},
			marks:  map[string]string{"a": "2"},
			record: &Record{ID: "2", Phase: Failed, InProgress: []string{"a"}, Message: "a did not come up again: crash"},
		},
		"what failed goes on when the service comes up after all": {
			asked: sequential, last: &Record{ID: "2", Phase: Failed, InProgress: []string{"a"}},
			services: []Service{{Name: "a", Made: true, Mark: "2", Done: true}, {Name: "b", Made: true, Done: true}},
			marks:    map[string]string{"a": "2", "b": "2"},
			record:   &Record{ID: "2", Phase: Restarting, InProgress: []string{"b"}},
		},
		"what fails goes on failing while it does not": {
			asked: sequential, last: &Record{ID: "2", Phase: Failed, InProgress: []string{"a"}},
			services: []Service{{Name: "a", Made: true, Mark: "2", Failure: "crash"}, {Name: "b", Made: true, Done: true}},
			marks:    map[string]string{"a": "2"},
			record:   &Record{ID: "2", Phase: Failed, InProgress: []string{"a"}, Message: "a did not come up again: crash"},
		},
		"a restart that is there at creation is observed, not carried out": {
			asked: sequential, services: []Service{{Name: "a"}, {Name: "b"}},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Completed},
		},
		"a service that is not made yet is made with the mark, also if the record of a creation is lost": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "2"}, {Name: "b"}},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Restarting, InProgress: []string{"a"}},
		},
		"nobody gets a mark while the orchestrator is busy": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "1", Done: true}, {Name: "b", Made: true, Mark: "1"}}, busy: true,
			marks:  map[string]string{"a": "1", "b": "1"},
			record: &Record{ID: "2", Phase: Pending, InProgress: []string{"a"}},
		},
		"the next does not begin while the orchestrator is busy with the one before": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "2", Done: true}, {Name: "b", Made: true, Done: true}}, busy: true,
			marks:  map[string]string{"a": "2"},
			record: &Record{ID: "2", Phase: Restarting, InProgress: []string{"b"}},
		},
		"a parallel restart is not completed before it began": {
			asked: parallel, services: []Service{{Name: "a", Made: true, Done: true}, {Name: "b", Made: true, Done: true}},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Pending, InProgress: []string{"a", "b"}},
		},
		"a parallel restart waits for those that are not through": {
			asked: parallel, services: []Service{{Name: "a", Made: true, Mark: "2", Done: true}, {Name: "b", Made: true, Mark: "2"}},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Restarting, InProgress: []string{"b"}},
		},
		"a new id supersedes a restart that has not ended": {
			asked: sequential, last: &Record{ID: "1", Phase: Restarting, InProgress: []string{"b"}},
			services: []Service{{Name: "a", Made: true, Mark: "1", Done: true}, {Name: "b", Made: true, Mark: "1"}},
			marks:    map[string]string{"a": "2", "b": "1"},
			record:   &Record{ID: "2", Phase: Pending, InProgress: []string{"a"}},
		},
		"the record may be lost: what was seen is enough": {
			asked: sequential, services: []Service{{Name: "a", Made: true, Mark: "2", Done: true}, {Name: "b", Made: true, Mark: "2"}},
			marks:  map[string]string{"a": "2", "b": "2"},
			record: &Record{ID: "2", Phase: Restarting, InProgress: []string{"b"}},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			step := Next(c.asked, c.last, c.services, c.busy)
			if diff := cmp.Diff(c.marks, step.Marks); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.record, step.Record); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryRestartEndsAndTakesDownNoMoreThanItMay plays random worlds: services
// come up after some reconciles, the record is lost at times.
func TestEveryRestartEndsAndTakesDownNoMoreThanItMay(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var services []Service
		var order []string
		for i := range 1 + random.IntN(6) {
			name := fmt.Sprint("s", i)
			services = append(services, Service{Name: name, Made: true, Done: true})
			order = append(order, name)
		}
		asked := &Restart{ID: "1", Order: order, Parallel: random.IntN(2) == 0}
		var record *Record
		passes := 0
		for ; passes < 1000 && (record == nil || record.Phase != Completed); passes++ {
			if random.IntN(5) == 0 {
				record = nil
			}
			step := Next(asked, record, services, random.IntN(4) == 0)
			record = step.Record
			down := 0
			for i := range services {
				s := &services[i]
				if mark := step.Marks[s.Name]; mark != s.Mark {
					s.Mark, s.Done = mark, false
				} else if !s.Done && random.IntN(3) == 0 {
					s.Done = true
				}
				if !s.Done {
					down++
				}
			}
			if !asked.Parallel && down > 1 {
				t.Fatalf("seed %d: %d services down at once in a sequential restart", seed, down)
			}
		}
		for _, s := range services {
			if s.Mark != "1" || !s.Done {
				t.Errorf("seed %d: after %d passes %s is marked %q, done %v", seed, passes, s.Name, s.Mark, s.Done)
			}
		}
	}
}
