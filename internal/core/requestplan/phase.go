package requestplan

import (
	"slices"

	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// Phases of profiling that a status names.
const (
	phaseInitializing = "Initializing"
	phaseDone         = "Done"
)

// phases are those of v1beta1, in order.
var phases = []string{
	phaseInitializing, "SweepingPrefill", "SweepingDecode", "SelectingConfig", "BuildingCurves", "GeneratingDGD", phaseDone,
}

// stages are what our profiler calls what it does.
var stages = map[profileoutput.Stage]string{
	profileoutput.StageRanking:   "SelectingConfig",
	profileoutput.StageMeasuring: "SweepingDecode",
	profileoutput.StageWriting:   "GeneratingDGD",
}

// phaseOf is how far a profiler says that it is. Who may write ConfigMaps may say
// something else; it is only shown, and only if it is one of the phases.
func phaseOf(output map[string]string) string {
	if progress, err := profileoutput.ParseProgress(output[profileoutput.KeyProgress]); err == nil {
		if phase, known := stages[progress.Stage]; known {
			return phase
		}
	}
	if phase := output[profileoutput.KeyPhase]; slices.Contains(phases, phase) {
		return phase
	}
	return phaseInitializing
}
