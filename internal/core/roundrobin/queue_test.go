package roundrobin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// next takes all values, of the flows that are not blocked.
func next(q *Queue[string, string], blocked ...string) []string {
	var got []string
	for {
		value, ok := q.Next(func(flow string) bool { return !strings.Contains(strings.Join(blocked, ""), flow) })
		if !ok {
			return got
		}
		got = append(got, value)
	}
}

func push(q *Queue[string, string], values ...string) map[string]Item[string, string] {
	items := map[string]Item[string, string]{}
	for _, value := range values {
		items[value] = q.Push(value[:1], value)
	}
	return items
}

func TestFlowsTakeTurns(t *testing.T) {
	cases := map[string]struct {
		push    []string
		remove  []string
		blocked []string
		want    []string
	}{
		"one flow is first in, first out":                 {push: []string{"a1", "a2", "a3"}, want: []string{"a1", "a2", "a3"}},
		"a full flow waits for the others":                {push: []string{"a1", "a2", "a3", "b1", "c1"}, want: []string{"a1", "b1", "c1", "a2", "a3"}},
		"a flow that may not has no turn":                 {push: []string{"a1", "b1", "b2"}, blocked: []string{"a"}, want: []string{"b1", "b2"}},
		"what is removed does not come":                   {push: []string{"a1", "a2", "b1"}, remove: []string{"a1"}, want: []string{"a2", "b1"}},
		"a flow that lost all its values has no turn":     {push: []string{"a1", "b1"}, remove: []string{"a1"}, want: []string{"b1"}},
		"nothing comes of nothing":                        {},
		"a flow keeps its turn when a later value leaves": {push: []string{"a1", "a2", "b1"}, remove: []string{"a2"}, want: []string{"a1", "b1"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var q Queue[string, string]
			items := push(&q, c.push...)
			for _, value := range c.remove {
				if got := q.Remove(items[value]); got != value {
					t.Errorf("removed %s, want %s", got, value)
				}
			}
			if diff := cmp.Diff(c.want, next(&q, c.blocked...)); diff != "" {
				t.Error("-want +got", diff)
			}
			if left := len(c.push) - len(c.remove) - len(c.want); q.Len() != left {
				t.Errorf("%d values are left, want %d", q.Len(), left)
			}
		})
	}
}

func TestAFlowThatWasServedComesAfterThoseThatWait(t *testing.T) {
	var q Queue[string, string]
	push(&q, "a1", "b1", "c1")
	if first, _ := q.Next(func(string) bool { return true }); first != "a1" {
		t.Fatalf("%s came first", first)
	}
	push(&q, "a2")
	if diff := cmp.Diff([]string{"b1", "c1", "a2"}, next(&q)); diff != "" {
		t.Error("-want +got", diff)
	}
}

func TestOneFlowCanBePoppedAlone(t *testing.T) {
	var q Queue[string, string]
	push(&q, "a1", "b1", "b2")
	if got, ok := q.Pop("b"); !ok || got != "b1" || q.LenOf("b") != 1 || q.LenOf("a") != 1 {
		t.Errorf("popped %s, %v; %d and %d are left", got, ok, q.LenOf("a"), q.LenOf("b"))
	}
	if got, ok := q.Pop("c"); ok {
		t.Errorf("popped %s of an empty flow", got)
	}
	var heads []string
	q.Heads(func(_, head string) bool {
		heads = append(heads, head)
		return true
	})
	if diff := cmp.Diff([]string{"a1", "b2"}, heads); diff != "" {
		t.Error("-want +got", diff)
	}
}
