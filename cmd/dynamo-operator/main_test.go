package main

import "testing"

func TestMemoryLimit(t *testing.T) {
	for rule, c := range map[string]struct {
		container, user string
		want            int64
		fails           bool
	}{
		"a tenth of the container's limit is left": {container: "1000", want: 900},
		"no limit is known":                        {},
		"the user's own limit counts":              {container: "1000", user: "1GiB"},
		"what is no number is refused":             {container: "1Gi", fails: true},
		"a negative one, too":                      {container: "-1", fails: true},
	} {
		t.Run(rule, func(t *testing.T) {
			got, err := memoryLimit(func(name string) string {
				return map[string]string{"MEMORY_LIMIT": c.container, "GOMEMLIMIT": c.user}[name]
			})
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
}
