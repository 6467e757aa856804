package analysis

import (
	"fmt"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// AbortReason is why a rollout was given up, or is held after a failure: the word that
// stands in the status of a graph and in the record of a revision.
type AbortReason string

const (
	// AbortRequested is a user's.
	AbortRequested AbortReason = "Requested"
	// AbortCrashed has a candidate that served, and then crashed again and again.
	AbortCrashed AbortReason = "CandidateCrashed"
	// AbortRegression has one that serves worse than the stable generation.
	AbortRegression AbortReason = "Regression"
	// AbortDeadline has come no nearer to its end for too long.
	AbortDeadline AbortReason = "ProgressDeadlineExceeded"
)

// A candidate that crashes this often within this time after it served is given up.
// One that never served may be short of something that comes back, such as a
// registry; it has until the deadline.
const (
	crashLimit  = 3
	crashWithin = 10 * time.Minute
)

// Candidate is what is known of a candidate when it is asked whether to go on.
type Candidate struct {
	Generation string
	// Crashes are when containers of it ended by themselves after they had served.
	Crashes []time.Time
	// ProgressedAt is when the rollout last came nearer to its end.
	ProgressedAt time.Time
	// Waiting says that the rollout waits for a user, or for a step's time: then nobody
	// expects progress.
	Waiting   bool
	Judgement Judgement
}

// Abort tells whether to give a candidate up, and why. A user's word counts in any
// case; whether the others do is the policy's.
func Abort(p policy.Policy, c Candidate, deadline time.Duration, now time.Time) (AbortReason, string, bool) {
	if c.Generation != "" && p.Abort == c.Generation {
		return AbortRequested, fmt.Sprintf("%s asks for it", v1alpha1.AnnotationRolloutAbort), true
	}
	reason, message := fault(p, c, deadline, now)
	return reason, message, reason != "" && p.OnFailure == policy.OnFailureAbort
}

// fault is what is wrong with a candidate; empty if nothing is.
func fault(p policy.Policy, c Candidate, deadline time.Duration, now time.Time) (AbortReason, string) {
	crashes := 0
	for _, at := range c.Crashes {
		if now.Sub(at) <= crashWithin {
			crashes++
		}
	}
	switch {
	case crashes >= crashLimit:
		return AbortCrashed, fmt.Sprintf("it served, and crashed %d times within %s", crashes, crashWithin)
	case p.Analysis != policy.AnalysisOff && c.Judgement.Verdict == policy.VerdictFail:
		return AbortRegression, c.Judgement.Message
	case deadline > 0 && !c.Waiting && !c.ProgressedAt.IsZero() && now.Sub(c.ProgressedAt) > deadline:
		return AbortDeadline, fmt.Sprintf("it came no nearer to its end for %s", deadline)
	}
	return "", ""
}

// Status is how a judgement is told.
func (j Judgement) Status() *v1alpha1.RolloutAnalysis {
	a := &v1alpha1.RolloutAnalysis{Verdict: string(j.Verdict), Samples: j.Samples}
	if j.Samples > 0 {
		a.Errors = []string{percent(j.Errors[0]), percent(j.Errors[1])}
	}
	a.TTFTP95, a.ITLP95 = pair(j.TTFT), pair(j.ITL)
	return a
}

func pair(p [2]time.Duration) []string {
	if p[0] == 0 || p[1] == 0 {
		return nil
	}
	return []string{p[0].String(), p[1].String()}
}
