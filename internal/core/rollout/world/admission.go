package world

import (
	"reflect"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Admission is to how many workers the frontends of a graph send requests. A pod is
// ready before they have found it, and one whose card they refuse they never send any.
type Admission struct {
	// Known says that every ready frontend has answered.
	Known bool
	// Workers are the least that any of them has, by model, Dynamo namespace and type of
	// worker.
	Workers map[string]map[string]map[string]int
	// Since is when the last of those that were asked became ready, as before it could know
	// no worker, or when they first answered, if that was later; zero if it is not known.
	Since time.Time
	// Lately are the most that all of them had of late; nil if that is not known.
	Lately map[string]map[string]map[string]int
}

// Merge is what two frontends have in common.
func (a Admission) Merge(b Admission) Admission {
	merged := Admission{Known: a.Known && b.Known, Workers: map[string]map[string]map[string]int{}}
	for model, namespaces := range a.Workers {
		merged.Workers[model] = map[string]map[string]int{}
		for namespace, types := range namespaces {
			least := map[string]int{}
			for kind, n := range types {
				least[kind] = min(n, b.Workers[model][namespace][kind])
			}
			merged.Workers[model][namespace] = least
		}
	}
	return merged
}

// admitted is how many replicas of the part at i the frontends send requests to, in one
// namespace. It is not known where several parts are of one type, and it is not said
// which model is whose. Frontends that look into one namespace alone may not name it: where
// they are of the generation's own, it is that.
func (a Admission) admitted(parts []graph.Component, ready []int, i int, namespace string, own bool) (n int, known bool) {
	kinds := types(parts[i])
	if !a.Known || kinds == nil {
		return 0, false
	}
	others := 0
	for j, other := range parts {
		if j == i || !overlap(kinds, types(other)) {
			continue
		}
		if parts[i].Model == "" {
			return 0, false
		}
		if other.Model == parts[i].Model {
			others += ready[j]
		}
	}
	for model, namespaces := range a.Workers {
		if parts[i].Model != "" && model != parts[i].Model {
			continue
		}
		workers := namespaces[namespace]
		if unnamed, there := namespaces[""]; there && own {
			workers = unnamed
		}
		sum := 0
		for _, kind := range kinds {
			sum += workers[kind]
		}
		n = max(n, sum) // adapters are models too, of the same workers
	}
	return max(0, n-others), true
}

// AdmissionLog is what frontends said of late. They tell how many workers they have, and
// not which: those that they have lost for a moment are known by there having been more.
type AdmissionLog struct {
	begun, last time.Time
	said        []listing
}

// listing is an answer, and when it was last given.
type listing struct {
	workers map[string]map[string]map[string]int
	until   time.Time
}

// Stale reports whether frontends have said nothing for so long that it has to begin anew.
func (l AdmissionLog) Stale(now time.Time) bool { return now.Sub(l.last) > mostAway }

// Seen adds what frontends say now, and forgets what they said longer ago than counts.
func (l AdmissionLog) Seen(a Admission, now time.Time, counts time.Duration) AdmissionLog {
	if l.Stale(now) {
		l = AdmissionLog{begun: now}
	}
	next := AdmissionLog{begun: l.begun, last: now}
	for _, of := range l.said {
		if now.Sub(of.until) < counts && !reflect.DeepEqual(of.workers, a.Workers) {
			next.said = append(next.said, of)
		}
	}
	next.said = append(next.said, listing{a.Workers, now})
	return next
}

// With is what frontends say now with what is remembered.
func (l AdmissionLog) With(a Admission) Admission {
	a.Since, a.Lately = workload.Latest(a.Since, l.begun), map[string]map[string]map[string]int{}
	for _, of := range l.said {
		for model, namespaces := range of.workers {
			if a.Lately[model] == nil {
				a.Lately[model] = map[string]map[string]int{}
			}
			for namespace, types := range namespaces {
				a.Lately[model][namespace] = most(a.Lately[model][namespace], types)
			}
		}
	}
	return a
}

// most are the most of each type of worker.
func most(a, b map[string]int) map[string]int {
	all := map[string]int{}
	for _, of := range []map[string]int{a, b} {
		for kind, n := range of {
			all[kind] = max(all[kind], n)
		}
	}
	return all
}

// types are what frontends call workers of a part; none for those that they do not
// call.
func types(c graph.Component) []string {
	switch generation.Part(c) {
	case graph.RolePrefill:
		return []string{"prefill"}
	case graph.RoleDecode, graph.RoleWorker:
		return []string{"decode", "aggregated"}
	default:
		return nil
	}
}

func overlap(a, b []string) bool {
	return len(a) > 0 && len(b) > 0 && a[0] == b[0]
}
