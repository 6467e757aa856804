package analysis

import (
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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

// Status is how a judgement is told.
func (j Judgement) Status() *v1alpha1.RolloutAnalysis {
	a := &v1alpha1.RolloutAnalysis{Verdict: string(j.Verdict), Samples: j.Samples}
	if j.Samples > 0 {
		a.Errors = []string{percent(j.Errors[0]), percent(j.Errors[1])}
	}
	a.TTFTP95, a.ITLP95 = pair(j.TTFT), pair(j.ITL)
	return a
}

// Told is what stands in a status after a judgement: as long as the verdict is the same,
// what was told before, until half as many samples again were seen. A status that told
// each of them would be written every time that somebody looked.
func (j Judgement) Told(before *v1alpha1.RolloutAnalysis) *v1alpha1.RolloutAnalysis {
	if before != nil && before.Verdict == string(j.Verdict) && j.Samples >= before.Samples && 2*j.Samples < 3*before.Samples {
		return before
	}
	if before != nil && before.Verdict == string(j.Verdict) && j.Samples == before.Samples {
		return before
	}
	return j.Status()
}

func pair(p [2]time.Duration) []string {
	if p[0] == 0 || p[1] == 0 {
		return nil
	}
	return []string{p[0].String(), p[1].String()}
}
