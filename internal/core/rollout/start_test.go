package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWaiting(t *testing.T) {
	for rule, c := range map[string]struct {
		services []Start
		want     map[string][]string
	}{
		"without an order nothing waits":            {[]Start{{Name: "a"}, {Name: "b"}}, map[string][]string{}},
		"a service waits for one that is not made":  {[]Start{{Name: "a"}, {Name: "b", After: []string{"a"}}}, map[string][]string{"b": {"a"}}},
		"and for one that is not ready":             {[]Start{{Name: "a", Made: true}, {Name: "b", After: []string{"a"}}}, map[string][]string{"b": {"a"}}},
		"it waits for those alone that are missing": {[]Start{{Name: "a", Made: true, Ready: true}, {Name: "b", Made: true}, {Name: "c", After: []string{"a", "b"}}}, map[string][]string{"c": {"b"}}},
		"it starts when all are ready":              {[]Start{{Name: "a", Made: true, Ready: true}, {Name: "b", After: []string{"a"}}}, map[string][]string{}},
		"one that has started does not go back":     {[]Start{{Name: "a", Made: true}, {Name: "b", After: []string{"a"}, Made: true}}, map[string][]string{}},
		"an order is a chain":                       {[]Start{{Name: "a", Made: true}, {Name: "b", After: []string{"a"}}, {Name: "c", After: []string{"b"}}}, map[string][]string{"b": {"a"}, "c": {"b"}}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Waiting(c.services)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
