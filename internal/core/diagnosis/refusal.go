package diagnosis

import (
	"regexp"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

var (
	// A refusal begins with the pod that was to be made, whose name is new each
	// time.
	whichPod = regexp.MustCompile(`^.*?\b[Pp]ods? "[^"]*" is (?:forbidden|invalid): `)
	// Controllers put their own words before.
	creating = regexp.MustCompile(`^.*?(?:[Ee]rror creating:|in StatefulSet \S+ failed error:|cause:) `)

	quota     = regexp.MustCompile(`^exceeded quota: (\S+), requested: (.+), used: (.+), limited: (.+)$`)
	noQuota   = regexp.MustCompile(`^failed quota: (\S+): (.+)$`)
	noAccount = regexp.MustCompile(`service account [^/\s]+/(\S+): serviceaccount "[^"]*" not found`)
	security  = regexp.MustCompile(`^violates PodSecurity "([^":]+)[^"]*": (.+)$`)
	limit     = regexp.MustCompile(`(?:maximum|minimum|max limit to request ratio|must specify)\b.* (?:per|for|in) `)
)

// refused reads why no pod could be made.
func refused(r snapshot.Refusal) Cause {
	c := Cause{Workload: r.By}
	text := strings.TrimSpace(r.Message)
	text = creating.ReplaceAllString(text, "")
	text = whichPod.ReplaceAllString(text, "")
	switch {
	case quota.MatchString(text):
		m := quota.FindStringSubmatch(text)
		c.Reason, c.Message = QuotaExceeded, "ResourceQuota "+m[1]+" leaves no room: asked for "+m[2]+", used "+m[3]+" of "+m[4]
	case noQuota.MatchString(text):
		m := noQuota.FindStringSubmatch(text)
		c.Reason, c.Message = QuotaExceeded, "ResourceQuota "+m[1]+": "+m[2]
	case noAccount.MatchString(text):
		c.Reason, c.Message = ServiceAccountNotFound, "ServiceAccount "+noAccount.FindStringSubmatch(text)[1]+" does not exist"
	case security.MatchString(text):
		m := security.FindStringSubmatch(text)
		c.Reason, c.Message = PodSecurityViolated, "the namespace's Pod Security level "+m[1]+" forbids: "+withoutAsides(m[2])
	case limit.MatchString(text):
		c.Reason, c.Message = LimitRangeViolated, "a LimitRange forbids: "+strings.Trim(text, "[]")
	default:
		c.Reason, c.Message = PodRefused, "the API server refuses the pod: "+text
	}
	c.Message = clip(c.Message)
	return c
}

var aside = regexp.MustCompile(` \([^()]*(?:\([^()]*\)[^()]*)*\)`)

// withoutAsides drops the explanations that Pod Security puts after each rule.
func withoutAsides(text string) string { return aside.ReplaceAllString(text, "") }
