package config

// Diagnosis is how much is read to say why something is not ready.
type Diagnosis struct {
	// ReadLogs has the last line that a crashed container printed read and shown
	// in the status. Without it the exit code is all that is shown, and what the
	// container told its node.
	ReadLogs bool `json:"readLogs"`
}
