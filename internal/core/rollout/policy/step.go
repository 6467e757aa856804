package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Step is a share of the entry replicas at which a rollout stops.
type Step struct {
	Share Share
	// Wait is how long it stops; zero is until a user promotes it.
	Wait time.Duration
}

// Share is a number of entry replicas, or a part of them.
type Share struct {
	Number  int
	Percent bool
}

func (s Share) String() string {
	if s.Percent {
		return strconv.Itoa(s.Number) + "%"
	}
	return strconv.Itoa(s.Number)
}

// Of is the share of a number of entry replicas, rounded up: a step is never of none.
func (s Share) Of(entries int) int {
	n := s.Number
	if s.Percent {
		n = (s.Number*entries + 99) / 100
	}
	return min(n, entries)
}

// hold is the word for a step without a time.
const hold = "hold"

// maxSteps bounds what a rollout has to be told about.
const maxSteps = 20

// maxWait is longer than any step should last; it keeps sums of times in range.
const maxWait = 30 * 24 * time.Hour

func (p *Policy) steps(value string) error {
	var steps []Step
	for part := range strings.SplitSeq(value, ",") {
		step, err := parseStep(part)
		if err != nil {
			return err
		}
		for _, before := range steps {
			if before.Share.Percent == step.Share.Percent && before.Share.Number >= step.Share.Number {
				return fmt.Errorf("goes from %s to %s: each step is larger than those before it", before.Share, step.Share)
			}
		}
		steps = append(steps, step)
	}
	if len(steps) > maxSteps {
		return fmt.Errorf("has %d steps, and %d is the most", len(steps), maxSteps)
	}
	p.Steps = steps
	return nil
}

func parseStep(part string) (Step, error) {
	words := strings.Fields(part)
	if len(words) != 2 {
		return Step{}, fmt.Errorf("has %q, which is no step such as 25%% 10m or 1 hold", strings.TrimSpace(part))
	}
	share, err := parseShare(words[0])
	if err != nil {
		return Step{}, err
	}
	if words[1] == hold {
		return Step{Share: share}, nil
	}
	wait, err := time.ParseDuration(words[1])
	if err != nil || wait <= 0 || wait > maxWait {
		return Step{}, fmt.Errorf("has %q, which is neither hold nor a time such as 10m", words[1])
	}
	return Step{share, wait}, nil
}

func parseShare(word string) (Share, error) {
	digits, percent := strings.CutSuffix(word, "%")
	n, err := strconv.ParseUint(digits, 10, 16)
	switch {
	case err != nil || n == 0:
		return Share{}, fmt.Errorf("has %q, which is neither a number of replicas such as 1 nor a share such as 25%%", word)
	case percent && n >= 100:
		return Share{}, errors.New("has a step of all replicas: nothing is left to go back to, so it is no step; what follows the last step is all of them")
	}
	return Share{int(n), percent}, nil
}

// Verdict is what the comparison with the stable generation came to.
type Verdict string

const (
	VerdictPass Verdict = "pass"
	VerdictFail Verdict = "fail"
	// VerdictInconclusive has not seen enough.
	VerdictInconclusive Verdict = "inconclusive"
)

// Standing is what is known of a rollout when its step is asked for.
type Standing struct {
	// Generation is the candidate.
	Generation string
	// Entries is how many entry replicas are desired, Wanted how many of them the
	// candidate has been told to have.
	Entries, Wanted int
	// Stop is how many entry replicas the candidate has at a level, and whether it can
	// stop there. Nil is the level, below all of them.
	Stop func(level int) (wanted int, ok bool)
	// Step is the one that was recorded, from 1; zero if the record is lost.
	Step int
	// Reached is when everything of that step served; zero while it does not.
	Reached time.Time
	Verdict Verdict
	Now     time.Time
}

// Position is the step that a rollout is at.
type Position struct {
	// Step counts from 1; one more than there are is past all of them.
	Step, Steps int
	// Level is how many entry replicas the candidate may have; zero is all of them.
	Level int
	// Until is when a timed step ends; zero if it is not reached or ends otherwise.
	Until time.Time
	// Waits is what the step waits for.
	Waits Waits
}

// Waits is what a step waits for.
type Waits string

const (
	// WaitsForNothing is past all steps, or not yet at its level.
	WaitsForNothing Waits = ""
	// WaitsForTime ends by itself.
	WaitsForTime Waits = "StepTime"
	// WaitsForPromotion ends when a user promotes it.
	WaitsForPromotion Waits = "StepHold"
	// WaitsForAnalysis has had its time, and too little was seen.
	WaitsForAnalysis Waits = "AnalysisInconclusive"
	// WaitsAfterFailure failed, and is held rather than aborted.
	WaitsAfterFailure Waits = "AnalysisFailed"
)

// String is how a status tells it, such as 2/4, or all past the steps; empty where
// there are none.
func (p Position) String() string {
	switch {
	case p.Steps == 0:
		return ""
	case p.Step > p.Steps:
		return everyStep
	default:
		return fmt.Sprintf("%d/%d", p.Step, p.Steps)
	}
}

// Recorded reads the number of the step back from what a position told. It is zero,
// as for a record that was lost, if it told of other steps than there are now.
func (p Policy) Recorded(position string) int {
	if position == everyStep {
		return len(p.Steps) + 1
	}
	step, all, _ := strings.Cut(position, "/")
	n, err := strconv.Atoi(step)
	if err != nil || n < 1 || all != strconv.Itoa(len(p.Steps)) {
		return 0
	}
	return n
}

// At is the step that a rollout is at. A step once passed stays so as long as it is
// recorded; where the record is lost, a candidate that was told to have more than a
// step allows has passed it, and what it is at is to be approved again.
func (p Policy) At(s Standing) Position {
	at := Position{Step: s.Step, Steps: len(p.Steps)}
	if at.Step < 1 {
		at.Step = p.passed(s) + 1
	}
	reached := s.Reached
	if promoted := p.promoted(s.Generation); promoted >= at.Step {
		at.Step, reached = promoted+1, time.Time{}
	}
	if s.Entries == 0 { // it sleeps, and nothing is passed by that
		at.Step = min(at.Step, at.Steps+1)
		return at
	}
	// A step of all replicas or more is none: the stable generation would be gone.
	for at.Step <= at.Steps && !s.stops(p.Steps[at.Step-1]) {
		at.Step, reached = at.Step+1, time.Time{}
	}
	if at.Step > at.Steps {
		at.Step = at.Steps + 1
		return at
	}
	step := p.Steps[at.Step-1]
	at.Level = step.Share.Of(s.Entries)
	if reached.IsZero() {
		return at
	}
	switch at.Waits = p.waits(step, reached, s); at.Waits {
	case WaitsForTime:
		at.Until = reached.Add(step.Wait)
	case WaitsForNothing:
		s.Step, s.Reached = at.Step+1, time.Time{}
		return p.At(s)
	}
	return at
}

// stops reports whether a rollout can stop at a step.
func (s Standing) stops(step Step) bool {
	level := step.Share.Of(s.Entries)
	if s.Stop == nil {
		return level < s.Entries
	}
	_, ok := s.Stop(level)
	return ok
}

// at is how many entry replicas the candidate has at a step.
func (s Standing) at(step Step) int {
	level := step.Share.Of(s.Entries)
	if s.Stop == nil {
		return level
	}
	wanted, _ := s.Stop(level)
	return wanted
}

// waits is what a step waits for whose level is reached.
func (p Policy) waits(step Step, reached time.Time, s Standing) Waits {
	judged := p.Analysis != AnalysisOff
	switch {
	case judged && s.Verdict == VerdictFail:
		return WaitsAfterFailure
	case step.Wait == 0:
		return WaitsForPromotion
	case s.Now.Before(reached.Add(step.Wait)):
		return WaitsForTime
	case p.Analysis == AnalysisRequired && s.Verdict != VerdictPass:
		return WaitsForAnalysis
	}
	return WaitsForNothing
}

// passed is how many steps the candidate must have passed to be told what it was.
func (p Policy) passed(s Standing) int {
	passed := 0
	for passed < len(p.Steps) && s.Entries > 0 && s.Wanted > s.at(p.Steps[passed]) {
		passed++
	}
	return passed
}

// promoted is the last step that a user let a generation pass.
func (p Policy) promoted(generation string) int {
	switch {
	case p.Promote == nil || p.Promote.Generation != generation:
		return 0
	case p.Promote.All:
		return len(p.Steps)
	default:
		return min(p.Promote.Step, len(p.Steps))
	}
}
