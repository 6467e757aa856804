package compat

import (
	"maps"
	"regexp"
	"slices"
)

// templates are the leaves of workloads that make pods what they are: a change
// of one replaces pods.
var templates = map[string]*regexp.Regexp{
	"Deployment":      regexp.MustCompile(`^spec\.template\.`),
	"LeaderWorkerSet": regexp.MustCompile(`^spec\.leaderWorkerTemplate\.(leaderTemplate|workerTemplate|size)`),
	"PodCliqueSet":    regexp.MustCompile(`^spec\.template\.cliques\[[^]]*\]\.(labels|annotations|spec\.podSpec\.)`),
}

// rolls reports whether an operator that takes over would replace pods to bring
// a difference about. What the original has not made has none.
func (d difference) rolls() bool {
	template := templates[d.kind]
	return template != nil && (d.leaf == "" && d.ours == "" || d.leaf != "" && template.MatchString(d.leaf))
}

// rolled are the manifests whose pods would not survive a takeover, each with
// the reasons.
func (t *tally) rolled() map[string][]string {
	found := map[string]map[string]bool{}
	note := func(d difference, why string) {
		if !d.rolls() {
			return
		}
		if found[d.manifest] == nil {
			found[d.manifest] = map[string]bool{}
		}
		found[d.manifest][why] = true
	}
	for reason, differences := range t.intended {
		for _, d := range differences {
			note(d, reason.title)
		}
	}
	for _, d := range t.unexplained {
		note(d, "nobody intended it: "+d.leaf)
	}
	all := map[string][]string{}
	for manifest, reasons := range found {
		all[manifest] = slices.Sorted(maps.Keys(reasons))
	}
	return all
}
