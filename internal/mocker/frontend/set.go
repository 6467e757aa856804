package frontend

import (
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/route"
)

// workerSet is the workers of a model that may serve one request together: those
// of one namespace, or all of them where a frontend knows no prefix.
//
//	incomplete --everybody who is needed is there--> complete --one type is gone--> incomplete
//
// A set that is incomplete gets no request at all: its decode workers must not
// prefill by themselves while the other generation has prefill workers to spare.
type workerSet struct {
	namespace string
	// card is that of the workers which answer, prefillCard of the others. Each
	// group must agree within itself; a prefill engine may be sized differently.
	card, prefillCard *discovery.Card
	decode, prefill   []target
	needs             map[discovery.WorkerType]bool
	missing           []discovery.WorkerType
	// Routers outlive changes of the workers: they remember who knows what.
	decodeRouter, prefillRouter *route.Router
}

func newWorkerSet(namespace string, before *workerSet, routing route.Options) *workerSet {
	s := &workerSet{namespace: namespace, needs: map[discovery.WorkerType]bool{}}
	if before != nil {
		s.decodeRouter, s.prefillRouter = before.decodeRouter, before.prefillRouter
	} else {
		s.decodeRouter, s.prefillRouter = route.New(routing), route.New(routing)
	}
	return s
}

// add takes a worker in, unless its card does not fit the others'.
func (s *workerSet) add(entry discovery.Model, endpoint discovery.Endpoint) bool {
	card, targets := &s.card, &s.decode
	if entry.Card.Type() == discovery.PrefillWorker {
		card, targets = &s.prefillCard, &s.prefill
	}
	if *card == nil {
		*card = &entry.Card
	} else if !(*card).Fit(entry.Card) {
		return false
	}
	for _, need := range entry.Card.Needs {
		s.needs[need] = true
	}
	*targets = append(*targets, target{
		instance: entry.Instance, url: endpoint.Transport.HTTP, kind: entry.Card.Type(),
		blocks: entry.Card.Runtime.TotalBlocks * max(1, entry.Card.Runtime.DataParallelSize),
	})
	return true
}

func (s *workerSet) has(instance uint64) bool {
	same := func(t target) bool { return t.instance == instance }
	return slices.ContainsFunc(s.decode, same) || slices.ContainsFunc(s.prefill, same)
}

// source is what the set's models are made of.
func (s *workerSet) source() string {
	if s.card != nil {
		return s.card.SourcePath
	}
	return s.prefillCard.SourcePath
}

// workers counts them by type.
func (s *workerSet) workers() map[discovery.WorkerType]int {
	out := map[discovery.WorkerType]int{}
	for _, t := range slices.Concat(s.decode, s.prefill) {
		out[t.kind]++
	}
	return out
}

// lacks is what the set needs and there is not. One that answers is one that
// decodes, whatever else it does.
func (s *workerSet) lacks(there map[discovery.WorkerType]bool) []discovery.WorkerType {
	var out []discovery.WorkerType
	for _, need := range slices.Sorted(maps.Keys(s.needs)) {
		if !there[need] && !(need == discovery.DecodeWorker && there[discovery.AggregatedWorker]) {
			out = append(out, need)
		}
	}
	return out
}

// complete says whether the set serves.
func (s *workerSet) complete() bool { return len(s.decode) > 0 && len(s.missing) == 0 }

// pick chooses the set of one request: at random, each by the number of workers
// that answer in it, unless the request, or in direct routing the pod, names one.
func (m *model) pick(p pins, own string) (*workerSet, pins, error) {
	var sets []*workerSet
	total := 0
	for _, s := range m.sets {
		if p.decode != 0 && slices.ContainsFunc(s.decode, func(t target) bool { return t.instance == p.decode }) {
			return s, p, nil
		}
		if !s.complete() {
			continue
		}
		if p.decode == 0 && own != "" {
			if at := slices.IndexFunc(s.decode, func(t target) bool { return t.at(own) }); at >= 0 {
				p.decode = s.decode[at].instance
				return s, p, nil
			}
		}
		sets = append(sets, s)
		total += len(s.decode)
	}
	if len(sets) == 0 {
		return nil, p, unavailable("%s", m.incomplete())
	}
	left := rand.IntN(total)
	for _, s := range sets {
		if left -= len(s.decode); left < 0 {
			return s, p, nil
		}
	}
	return sets[len(sets)-1], p, nil
}

// incomplete says what each set lacks.
func (m *model) incomplete() string {
	var why []string
	for _, s := range m.sets {
		for _, kind := range s.missing {
			why = append(why, "namespace "+s.namespace+" has no "+string(kind)+" worker")
		}
	}
	if why == nil {
		return "no worker of this model answers"
	}
	return strings.Join(why, ", ")
}

// at reports whether the worker is on that host.
func (t target) at(host string) bool {
	u, err := url.Parse(t.url)
	return err == nil && u.Hostname() == host
}
