// Package exit is how a verb ends that has codes of its own.
package exit

// With ends the program with a code. Without a message nothing went wrong, and nothing
// is said.
type With struct {
	Code    int
	Message string
}

func (w With) Error() string { return w.Message }
