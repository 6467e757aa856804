package requestplan

import "github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"

// stages are what our profiler calls what it does.
var stages = map[profileoutput.Stage]string{
	profileoutput.StageRanking:   profileoutput.PhaseSelectingConfig,
	profileoutput.StageMeasuring: profileoutput.PhaseSweepingDecode,
	profileoutput.StageWriting:   profileoutput.PhaseGeneratingDGD,
}

// phaseOf is how far a profiler says that it is: ours by its progress, one of others
// by the word that the collector beside it passes on. Who may write ConfigMaps may
// say something else; it is only shown, and only if it is one of the phases.
func phaseOf(output map[string]string) string {
	if progress, err := profileoutput.ParseProgress(output[profileoutput.KeyProgress]); err == nil {
		if phase, known := stages[progress.Stage]; known {
			return phase
		}
	}
	if phase := output[profileoutput.KeyPhase]; profileoutput.IsPhase(phase) {
		return phase
	}
	return profileoutput.PhaseInitializing
}
