package main

import (
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// requests counts requests by verb.
type requests map[string]int

// since counts the operator's requests after a place in the API server's audit
// log. Leases are left out: renewing one is no work on a graph.
func (s *stage) since(place int64) (requests, error) {
	counts := requests{}
	err := s.audit.Since(place, func(e auditlog.Entry) {
		if !strings.HasPrefix(e.UserAgent, "dynamo-operator") || e.Ref.Resource == "leases" {
			return
		}
		verb := e.Verb
		switch {
		case e.Ref.Resource == "events":
			verb += " event"
		case e.Ref.Subresource == "status":
			verb += " status"
		}
		counts[verb]++
	})
	return counts, err
}

// writes are all requests that change something.
func (r requests) writes() int {
	n := 0
	for verb, count := range r {
		if (auditlog.Entry{Verb: strings.Fields(verb)[0]}).Writes() {
			n += count
		}
	}
	return n
}
